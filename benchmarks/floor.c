/* Trials of CDP-MAB with agents that are alike, on one core: what the work takes without arrays.
 *
 * It is a floor for `python -m benchmarks kernels` and no part of the package. The laws are the
 * package's. It keeps no curves, and one block of random bits gives both draws of an arm and a
 * round, where the package uses two. Loops over arms are without branches, so that
 *     cc -O3 -march=native -ffast-math -fno-finite-math-only -shared -fPIC floor.c -lm
 * vectorises them.
 */
#include <math.h>
#include <stdint.h>

#define MOST_ARMS 128
#ifndef TERMS
#define TERMS 24
#endif
#define FARTHEST 8.25 /* normal values further out do not occur */

typedef struct {
    long arms;
    double agents, horizon, epsilon;
    double laplace[TERMS]; /* polynomial of a sum of Laplace variables, highest power first */
} Study;

typedef struct { /* the active arms of a trial, in front */
    uint32_t index[MOST_ARMS];
    double mean[MOST_ARMS], gap[MOST_ARMS], total[MOST_ARMS];
    long active;
} Arms;

typedef struct { /* what is computed of each active arm in a round */
    uint32_t first[MOST_ARMS], second[MOST_ARMS];
    double z_reward[MOST_ARMS], z_noise[MOST_ARMS], reward[MOST_ARMS], is_doubtful[MOST_ARMS];
} Round;

/* Threefry-2x32 with 20 rounds, as in JAX. */
static inline void cipher(uint32_t k0, uint32_t k1, uint32_t x0, uint32_t x1, uint32_t *out0,
                          uint32_t *out1) {
    const uint32_t keys[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDA};
    x0 += k0;
    x1 += k1;
#define MIX(r) x0 += x1, x1 = (x1 << r) | (x1 >> (32 - r)), x1 ^= x0
#define GROUP(a, b, c, d, i)                                    \
    MIX(a), MIX(b), MIX(c), MIX(d);                             \
    x0 += keys[i % 3], x1 += keys[(i + 1) % 3] + (uint32_t)(i)
    GROUP(13, 15, 26, 6, 1);
    GROUP(17, 29, 16, 24, 2);
    GROUP(13, 15, 26, 6, 3);
    GROUP(17, 29, 16, 24, 4);
    GROUP(13, 15, 26, 6, 5);
    *out0 = x0;
    *out1 = x1;
}

/* Logarithm of a number in (0, 1); the library's is not vectorised. */
static inline double log_unit(double x) {
    union { double number; uint64_t bits; } whole = {x}, part, power;
    part.bits = (whole.bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL;
    power.bits = (whole.bits >> 52) | 0x4330000000000000ULL;
    const int is_large = part.number > M_SQRT2;
    const double exponent = power.number - (0x1p52 + 1023.0) + (is_large ? 1.0 : 0.0);
    const double f = is_large ? 0.5 * part.number : part.number;
    const double t = (f - 1) / (f + 1), s = t * t;
    double series = 2.0 / 19;
    for (int k = 17; k >= 1; k -= 2) series = series * s + 2.0 / k;
    return exponent * M_LN2 + t * series;
}

/* Two independent normal variables, by Box and Muller. */
static inline void normal_pair(uint32_t first, uint32_t second, double *z0, double *z1) {
    const double radius = sqrt(-2 * log_unit((first + 0.5) * 0x1p-32));
    /* Two bits choose the quadrant; the others are an angle within 45 degrees. */
    const double x = ((double)(int32_t)(second << 2) + 2.0) * (0x1p-32 * M_PI_2), s = x * x;
    const double cosine =
        1 + s * (-1. / 2 + s * (1. / 24 + s * (-1. / 720 + s * (1. / 40320 + s * (-1. / 3628800
        + s * (1. / 479001600))))));
    const double sine =
        x * (1 + s * (-1. / 6 + s * (1. / 120 + s * (-1. / 5040 + s * (1. / 362880
        + s * (-1. / 39916800))))));
    const int swaps = second >> 30 & 1, turns = second >> 31;
    const double a = swaps ? sine : cosine, b = swaps ? cosine : sine;
    *z0 = radius * (turns ? -a : a);
    *z1 = radius * b;
}

/* Quantile of a binomial by Cornish and Fisher, and 1 in `is_doubtful` where that may be wrong. */
static inline double expand_binomial(double z, double n, double p, double *is_doubtful) {
    const double q = 1 - p, pq = p * q, v = n * pq, s = z * z;
    const double variance = v - 1. / 12 > 1. ? v - 1. / 12 : 1.;
    const double scale = 1 / sqrt(variance), sq = scale * scale, deviation = variance * scale;
    const double g1 = v * (q - p) * scale * sq;
    const double g2 = (v * (1 - 6 * pq) + 1. / 120) * sq * sq;
    const double g3 = g1 * (1 - 12 * pq) * sq;
    const double g4 = (v * (1 - 30 * pq * (1 - 4 * pq)) - 1. / 252) * sq * sq * sq;
    const double second = g1 * (s - 1) / 6;
    const double third = z * (g2 * (s - 3) / 24 - g1 * g1 * (2 * s - 5) / 36);
    const double fourth = g3 * ((s - 6) * s + 3) / 120 - g1 * g2 * ((s - 5) * s + 2) / 24
                          + g1 * g1 * g1 * ((12 * s - 53) * s + 17) / 324;
    const double fifth =
        z * (g4 * ((s - 10) * s + 15) / 720 - g2 * g2 * ((3 * s - 24) * s + 29) / 384
        - g1 * g3 * ((2 * s - 17) * s + 21) / 180 + g1 * g1 * g2 * ((14 * s - 103) * s + 107) / 288
        - g1 * g1 * g1 * g1 * ((252 * s - 1688) * s + 1511) / 7776);
    const double edge = n * p + deviation * (z + second + third + fourth + fifth) - .5;
    const double error = (.02 + .003 * s * s * s) / (v * v);
    const double is_near = fabs(edge - rint(edge)) < error ? 1. : 0.;
    /* Arithmetic in place of && and ||: branches would keep the loop from being vectorised. */
    *is_doubtful = (v < 4 ? 1. : 0.) + (v < 40 ? 1. : 0.) * is_near;
    const double count = ceil(edge), floored = count < 0 ? 0 : count;
    return floored > n ? n : floored;
}

/* Quantile of a binomial, term by term. */
static double sum_binomial(double z, double n, double chance) {
    const int flips = chance > .5;
    const double p = flips ? 1 - chance : chance, odds = p / (1 - p);
    const double last = fmin(n, ceil(n * p + 10 * sqrt(n * p) + 25));
    double mass = exp(n * log1p(-p)), count = 0;
    double left = .5 * erfc((flips ? z : -z) * M_SQRT1_2) - mass;
    while (left > 0 && count < last) {
        mass *= (n - count) * odds / (count + 1);
        left -= mass;
        count++;
    }
    return flips ? n - count : count;
}

/* The sum of all agents' Laplace variables of scale 1, from one normal variable. */
static inline double laplace_sum(const double *polynomial, double z) {
    const double x = fabs(z) * (2 / FARTHEST) - 1;
    double ratio = polynomial[0];
#pragma GCC unroll 24
    for (int i = 1; i < TERMS; i++) ratio = ratio * x + polynomial[i];
    return z * ratio;
}

static void draw_means(const Study *study, uint32_t k0, uint32_t k1, Arms *arms, Round *round) {
    uint32_t c0, c1;
    double best = 0;
    cipher(k0, k1, 0, 0, &c0, &c1);
    for (long k = 0; k < study->arms; k++) cipher(c0, c1, 0, k, &round->first[k], &round->second[k]);
    for (long k = 0; k < study->arms; k++)
        arms->mean[k] = (round->first[k] + (round->second[k] + .5) * 0x1p-32) * 0x1p-32;
    for (long k = 0; k < study->arms; k++) best = arms->mean[k] > best ? arms->mean[k] : best;
    for (long k = 0; k < study->arms; k++) {
        arms->gap[k] = best - arms->mean[k];
        arms->total[k] = 0;
        arms->index[k] = k;
    }
    arms->active = study->arms;
}

/* Adds rewards and noise of a round to the totals; `pulls` are new ones, of one agent. */
static void draw_round(const Study *study, uint32_t k0, uint32_t k1, double pulls, Arms *arms,
                       Round *round) {
    const double n = study->agents * pulls, scale = 1 / (study->agents * study->epsilon);
    const long active = arms->active;
    double polynomial[TERMS], doubtful = 0;
    for (int i = 0; i < TERMS; i++) polynomial[i] = study->laplace[i];
    /* Three loops in place of one: each keeps its values in registers. */
    for (long k = 0; k < active; k++)
        cipher(k0, k1, 0, arms->index[k], &round->first[k], &round->second[k]);
    for (long k = 0; k < active; k++)
        normal_pair(round->first[k], round->second[k], &round->z_reward[k], &round->z_noise[k]);
    for (long k = 0; k < active; k++) {
        round->reward[k] =
            expand_binomial(round->z_reward[k], n, arms->mean[k], &round->is_doubtful[k]);
        doubtful += round->is_doubtful[k];
    }
    if (doubtful > 0)
        for (long k = 0; k < active; k++)
            if (round->is_doubtful[k] > 0)
                round->reward[k] = sum_binomial(round->z_reward[k], n, arms->mean[k]);
    for (long k = 0; k < active; k++)
        arms->total[k] += round->reward[k] + scale * laplace_sum(polynomial, round->z_noise[k]);
}

/* Keeps the arms whose totals are within `width` of the best. */
static void eliminate(Arms *arms, double width) {
    double best = -1e300;
    long left = 0;
    for (long k = 0; k < arms->active; k++) best = arms->total[k] > best ? arms->total[k] : best;
    for (long k = 0; k < arms->active; k++) {
        const int stays = arms->total[k] > best - width;
        arms->mean[left] = arms->mean[k];
        arms->gap[left] = arms->gap[k];
        arms->total[left] = arms->total[k];
        arms->index[left] = arms->index[k];
        left += stays;
    }
    arms->active = left;
}

static double run_trial(const Study *study, uint32_t k0, uint32_t k1) {
    const double M = study->agents, K = study->arms, T = study->horizon;
    Arms arms;
    Round round;
    double slot = 0, pulls = 0, regret = 0;
    draw_means(study, k0, k1, &arms, &round);
    for (int r = 1;; r++) {
        const double log_active = log(8 * arms.active * (double)r * r * T);
        const double root = sqrt(2 * log(8 * K * r * r * T)), gap = ldexp(1, -r);
        const double by_reward = 8 * log_active / (M * gap * gap);
        const double by_noise = 8 * r * root / (M * sqrt(M) * study->epsilon * gap);
        const double planned = fmax(ceil(fmax(by_reward, by_noise)), pulls + 1);
        const double fresh = planned - pulls, length = arms.active * fresh;
        double gaps = 0;
        for (long k = 0; k < arms.active; k++) gaps += arms.gap[k];
        if (slot + length > T) return regret + M * gaps / arms.active * (T - slot);
        regret += M * fresh * gaps;
        slot += length;
        pulls = planned;
        uint32_t c0, c1;
        cipher(k0, k1, 0, r, &c0, &c1);
        draw_round(study, c0, c1, fresh, &arms, &round);
        const double radius = sqrt(log_active / (2 * M * pulls))
                              + 2 * r * root / (M * sqrt(M) * study->epsilon * pulls);
        eliminate(&arms, 2 * radius * M * pulls);
        if (arms.active == 1) return regret + M * arms.gap[0] * (T - slot);
    }
}

/* Writes the final regret of each trial. */
void run(const Study *study, long first, long trials, double *regret) {
    for (long i = 0; i < trials; i++) {
        uint32_t k0, k1;
        cipher(0, 7, 0, (uint32_t)(first + i), &k0, &k1);
        regret[i] = run_trial(study, k0, k1);
    }
}
