"use strict";
// Unpacks the plotting library that lies in this file, and draws with native controls around it.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const byId = (id) => document.getElementById(id);
  const NONE = "rgba(0,0,0,0)";

  async function library() {
    const packed = atob(byId("library").textContent.trim());
    const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(plain).text();
    document.head.append(script);
    if (!window.Plotly) throw new Error("the plotting library did not start");
  }

  // Controls -------------------------------------------------------------------------------------

  function select(form, name, words, options, chosen) {
    const label = document.createElement("label");
    label.className = "choose";
    const told = document.createElement("span");
    told.textContent = words;
    const field = document.createElement("select");
    field.name = name;
    for (const [value, text] of options) field.add(new Option(text, value, false, value === chosen));
    label.append(told, field);
    form.append(label);
    return field;
  }

  function tick(form, name, words, on) {
    const label = document.createElement("label");
    const field = document.createElement("input");
    field.type = "checkbox";
    field.name = name;
    field.checked = on;
    label.append(field, document.createTextNode(words));
    form.append(label);
    return field;
  }

  // Colour and stroke of the curve at this place; black is lost on a dark page.
  function look(place) {
    const colour = data.colours[place % data.colours.length];
    const own = dark.matches && colour === "#000000" ? "#ffffff" : colour;
    return { color: own, dash: data.strokes[place % data.strokes.length], width: 2 };
  }

  function swatch(place) {
    const { color, dash } = look(place);
    const strokes = { solid: "", dash: "8 3", dot: "2 3", dashdot: "8 3 2 3" };
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    const line = document.createElementNS(space, "line");
    for (const [key, value] of [["width", 28], ["height", 10], ["aria-hidden", "true"]])
      svg.setAttribute(key, value);
    const drawn = { x1: 0, x2: 28, y1: 5, y2: 5, stroke: color, "stroke-width": 3 };
    drawn["stroke-dasharray"] = strokes[dash];
    for (const [key, value] of Object.entries(drawn)) line.setAttribute(key, value);
    svg.append(line);
    return svg;
  }

  function faded(colour, opacity) {
    const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    return `rgba(${parts.join(",")},${opacity})`;
  }

  // Looks of all figures -------------------------------------------------------------------------

  function colourOf(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function layout(more) {
    const ink = colourOf("--ink");
    const axis = { gridcolor: colourOf("--line"), linecolor: ink, zeroline: false, automargin: true,
      separatethousands: true, ticks: "outside", tickcolor: ink };
    const { xaxis, yaxis, ...rest } = more;
    return {
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: ink },
      paper_bgcolor: NONE, plot_bgcolor: NONE, showlegend: false,
      margin: { l: 64, r: 42, t: 34, b: 52 },
      hoverlabel: { bgcolor: colourOf("--wash"), bordercolor: ink, font: { color: ink, size: 12 } },
      hoverdistance: -1,
      modebar: { bgcolor: NONE, color: colourOf("--soft"), activecolor: ink },
      xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis }, ...rest,
    };
  }

  // Only these buttons: others would send the figure somewhere.
  const config = { responsive: true, displaylogo: false, showTips: false, plotlyServerURL: "",
    modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]],
    toImageButtonOptions: { format: "svg" } };

  // Whole numbers up to millions, powers of ten beyond, and wherever an axis is logarithmic.
  function scaled(values, log) {
    const most = Math.max(0, ...values.flat().map(Math.abs));
    return { type: log ? "log" : "linear", exponentformat: log || most >= 1e7 ? "power" : "none",
      ...(log && most < 1e5 ? { exponentformat: "none" } : {}) };
  }

  function draw(id, traces, more, words) {
    const box = byId(id);
    Plotly.react(box, traces, layout(more), config);
    const svg = box.querySelector("svg.main-svg");
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", words);
    if (svg) svg.setAttribute("aria-hidden", "true");
  }

  const digits = (value) => value === null ? "" : Number(value.toPrecision(4)).toLocaleString("en");
  const shown = (values) => values.map(([m, l, u]) => `${digits(m)} [${digits(l)}, ${digits(u)}]`);

  // What a configuration is called where the others are fixed.
  function called(cell, taken) {
    const own = data.axes.flatMap((axis, i) =>
      taken.includes(axis.name) && data.cells[cell].at[i] !== null
        ? [axis.labels[data.cells[cell].at[i]]] : []);
    const named = own.join(", ") || data.cells[cell].label;
    return [named, data.cells[cell].leak].filter(Boolean).join(", ");
  }

  // A line with its band. On a logarithmic axis nothing is at or below 0.
  function curve(entry, triple, place, options) {
    const slots = data.curves.grids[entry.grid];
    const own = look(place);
    const label = options.called(entry.cell);
    const least = Math.min(...triple[0].filter((value) => value > 0)) / 2;
    const safe = (values) => options.log ? values.map((v) => Math.max(v, least)) : values;
    const traces = [];
    if (options.band) {
      const [, lower, upper] = triple.map(safe);
      traces.push({ x: [...slots, ...[...slots].reverse()], y: [...upper, ...[...lower].reverse()],
        type: "scatter", fill: "toself", fillcolor: faded(own.color, 0.2), line: { width: 0 },
        mode: "lines", hoverinfo: "skip" });
    }
    const text = shown(slots.map((_, i) => triple.map((values) => values[i])));
    traces.push({ x: slots, y: triple[0], type: "scatter", mode: "lines", line: own, name: label,
      text, hovertemplate: `${escaped(label)}: %{text}<extra></extra>` });
    return traces;
  }

  // Plotly reads some tags in texts.
  function escaped(text) {
    return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")
      .replace(/%\{/g, "% {");
  }

  // Which configurations differ in what is chosen, the others being fixed ---------------------------

  const names = data.axes.map((axis) => axis.name);

  function fixing(form, taken, prefix, redraw) {
    for (const old of form.querySelectorAll("label.fixed")) old.remove();
    for (const axis of data.axes) {
      if (taken.includes(axis.name)) continue;
      const options = axis.labels.map((text, place) => [String(place), text]);
      const kept = fixing.kept[prefix + axis.name] ?? String(axis.reference);
      const field = select(form, axis.name, axis.title, options, kept);
      field.parentElement.classList.add("fixed");
      field.addEventListener("change", () => {
        fixing.kept[prefix + axis.name] = field.value;
        redraw();
      });
    }
  }
  fixing.kept = {};

  function fits(cell, taken, prefix) {
    return data.axes.every((axis, i) => taken.includes(axis.name) || data.cells[cell].at[i] === null
      || String(data.cells[cell].at[i]) === (fixing.kept[prefix + axis.name] ?? String(axis.reference)));
  }

  // Curves over time -------------------------------------------------------------------------------

  const EVERYTHING = "everything";
  const MOST = data.colours.length * data.strokes.length;
  const hidden = new Set();

  function curves() {
    const form = byId("curve-controls"), links = byId("link-controls");
    const entries = data.curves.cells;
    const few = entries.length <= 8;
    let along = null;
    if (data.axes.length && entries.length > 1) {
      const options = data.axes.map((axis) => [axis.name, axis.title]);
      if (entries.length <= MOST) options.push([EVERYTHING, "everything"]);
      const start = few ? EVERYTHING : names[0];
      if (options.length > 1) along = select(form, "along", "Curves differ in", options, start);
    }
    const fields = document.createElement("fieldset");
    const legend = document.createElement("legend");
    legend.textContent = "Curves";
    const places = document.createElement("span");
    places.style.display = "contents";
    form.append(places);
    const band = tick(form, "band", "bands", true);
    const logX = tick(form, "logx", "logarithmic slots", data.logTime);
    const logY = tick(form, "logy", "logarithmic regret", false);
    form.append(fields);
    const meters = Object.entries(data.meters);
    // One that all configurations have, if there is one: of several algorithms that is the cost.
    const common = meters.find(([key]) => entries.every((entry) => entry.links[key]));
    const first = (common ?? meters[0] ?? [""])[0];
    const meter = select(links, "meter", "What is counted", meters, first);
    const logLinks = tick(links, "loglinks", "logarithmic links", false);

    const taken = () => !along || along.value === EVERYTHING ? names : [along.value];
    const chosen = () => entries.filter((entry) => fits(entry.cell, taken(), "c ")).slice(0, MOST);

    function list() {
      fields.replaceChildren(legend);
      chosen().forEach((entry, place) => {
        const box = tick(fields, `curve-${entry.cell}`, "", !hidden.has(entry.cell));
        box.parentElement.append(swatch(place), called(entry.cell, taken()));
        box.addEventListener("change", () => {
          if (box.checked) hidden.delete(entry.cell); else hidden.add(entry.cell);
          redraw();
        });
      });
    }

    function redraw() {
      const visible = chosen().map((entry, place) => [entry, place])
        .filter(([entry]) => !hidden.has(entry.cell));
      const nameOf = (cell) => called(cell, taken());
      const options = { band: band.checked, log: logY.checked, called: nameOf };
      const x = { title: { text: "slot t" }, ...scaled(data.curves.grids, logX.checked),
        hoverformat: ",d" };
      const hover = visible.length <= 8 ? "x unified" : "closest";
      const words = visible.map(([entry]) => data.cells[entry.cell].label).join("; ");
      const regret = visible.flatMap(([entry, place]) => curve(entry, entry.regret, place, options));
      draw("plot-regret", regret, { hovermode: hover, xaxis: x, yaxis: {
        title: { text: "cumulative regret (reward)" },
        ...scaled(visible.map(([entry]) => entry.regret[2]), logY.checked),
        ...(logY.checked ? {} : { rangemode: "tozero" }) } },
      `Cumulative regret over time, with bands: ${words}. The table of final values has the numbers.`);
      const told = { ...options, log: logLinks.checked };
      const counted = visible.filter(([entry]) => entry.links[meter.value])
        .flatMap(([entry, place]) => curve(entry, entry.links[meter.value], place, told));
      const name = data.meters[meter.value] ?? "links";
      draw("plot-links", counted, { hovermode: hover, xaxis: x, yaxis: {
        title: { text: meter.value === "the cost" ? "cost so far" : "links so far" },
        ...scaled(visible.map(([entry]) => entry.links[meter.value]?.[2] ?? []), logLinks.checked),
        ...(logLinks.checked ? {} : { rangemode: "tozero" }) } },
      `${name}, over time: ${words}. The table of final values has the numbers.`);
      const all = entries.length;
      byId("curves-told").textContent =
        all > 1 ? `${visible.length} of ${all} configurations are shown.` : "";
    }

    function refresh() {
      fixing(places, taken(), "c ", () => { list(); redraw(); });
      list();
      redraw();
    }
    if (along) along.addEventListener("change", refresh);
    for (const field of [band, logX, logY, meter, logLinks]) field.addEventListener("change", redraw);
    refresh();
    return () => { list(); redraw(); };
  }

  // Final values -----------------------------------------------------------------------------------

  function finals() {
    const form = byId("final-controls");
    if (!form) return () => {};
    const axisOf = Object.fromEntries(data.axes.map((axis, i) => [axis.name, { ...axis, i }]));
    const titled = data.order.map((name) => [name, axisOf[name].title]);
    const metric = select(form, "metric", "What is drawn",
      Object.entries(data.finals).map(([key, { title }]) => [key, title]), "regret");
    const x = select(form, "x", "against", titled, data.order[0]);
    const hue = select(form, "hue", "told apart by colour",
      [["", "nothing"], ...titled], data.order[1] ?? "");
    const places = document.createElement("span");
    places.style.display = "contents";
    form.append(places);
    const logX = tick(form, "finals-logx", "logarithmic parameter", false);
    const logY = tick(form, "finals-logy", "logarithmic values", false);
    const key = document.createElement("fieldset");
    form.append(key);
    const taken = () => [x.value, hue.value];

    function redraw() {
      const across = axisOf[x.value], by = axisOf[hue.value === x.value ? "" : hue.value];
      const numeric = across.numbers.filter((number) => number !== null);
      const apart = numeric.length > 1;
      const log = apart && logX.checked && numeric.every((number) => number > 0);
      // What is no number, such as no noise, stands at the end.
      const low = Math.min(...numeric), high = Math.max(...numeric);
      const beyond = (rank) => log ? high * (high / low) ** (0.2 * rank) : high + (high - low) * 0.2 * rank;
      let rank = 0;
      const position = across.numbers.map((number, place) => {
        if (!apart) return place;
        return number === null ? beyond(++rank) : number;
      });
      const groups = new Map();
      data.cells.forEach((cell, index) => {
        if (cell.at[across.i] === null || !fits(index, taken(), "f ")) return;
        const group = by ? cell.at[by.i] : 0;
        const value = data.finals[metric.value].values[index];
        if (value[0] === null) return;
        if (!groups.has(group)) groups.set(group, []);
        groups.get(group).push([position[cell.at[across.i]], value, across.labels[cell.at[across.i]], cell]);
      });
      key.replaceChildren();
      const traces = [];
      [...groups.keys()].sort((a, b) => a - b).forEach((group) => {
        const place = by ? group : 0;
        const points = groups.get(group).sort((a, b) => a[0] - b[0]);
        const label = !by ? "" : group === null ? "others" : by.labels[group];
        const triples = points.map((point) => point[1]);
        const told = shown(triples);
        const own = place === null ? { color: "#777777", dash: "dot" } : look(place);
        traces.push({ x: points.map((point) => point[0]), y: triples.map(([m]) => m), type: "scatter",
          mode: `${apart ? "lines+" : ""}markers+text`, line: own, marker: { size: 8, color: own.color },
          customdata: points.map((point) => point[3].mark), texttemplate: "%{customdata}",
          textposition: "top center", textfont: { color: own.color },
          error_y: { type: "data", symmetric: false, color: own.color,
            array: triples.map(([m, , u]) => u - m), arrayminus: triples.map(([m, l]) => m - l) },
          text: points.map((point, i) => escaped(
            `${[label, point[2], point[3].leak].filter(Boolean).join(", ")}: ${told[i]}`)),
          hovertemplate: "%{text}<extra></extra>" });
        if (label) {
          const entry = document.createElement("span");
          entry.style.cssText = "display:inline-flex;gap:.4rem;align-items:center";
          if (place !== null) entry.append(swatch(place), label);
          else entry.append(`${label} (grey)`);
          key.append(entry);
        }
      });
      logX.parentElement.hidden = !(apart && numeric.every((number) => number > 0));
      const title = data.finals[metric.value].title;
      const xaxis = { title: { text: across.title }, type: log ? "log" : "linear",
        tickvals: position, ticktext: across.ticks };
      draw("plot-finals", traces, { hovermode: "closest", xaxis, yaxis: {
        title: { text: metric.value.startsWith("links ") ? "links at the horizon" : title },
        ...scaled(traces.map((trace) => trace.y), logY.checked),
        ...(logY.checked ? {} : { rangemode: "tozero" }) } },
      `${title} against ${across.title}. The table below has the numbers.`);
      const rest = data.axes.filter((axis) => !taken().includes(axis.name));
      byId("finals-told").textContent = rest.length ? "Others as chosen above." : "";
    }

    function refresh() {
      const across = axisOf[x.value].numbers.filter((number) => number !== null);
      logX.checked = across.length > 1 && Math.min(...across) > 0
        && Math.max(...across) > 8 * Math.min(...across);
      fixing(places, taken(), "f ", redraw);
      redraw();
    }
    for (const field of [x, hue]) field.addEventListener("change", refresh);
    for (const field of [metric, logX, logY]) field.addEventListener("change", redraw);
    refresh();
    return redraw;
  }

  // Tables -----------------------------------------------------------------------------------------

  function sorting() {
    for (const table of document.querySelectorAll("table.sortable")) {
      table.querySelectorAll("thead th").forEach((head, column) => {
        const button = document.createElement("button");
        button.type = "button";
        button.append(...head.childNodes);
        head.append(button);
        button.addEventListener("click", () => {
          const up = head.getAttribute("aria-sort") !== "ascending";
          for (const other of table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
          head.setAttribute("aria-sort", up ? "ascending" : "descending");
          const body = table.tBodies[0];
          const value = (row) => {
            const cell = row.cells[column], own = cell ? cell.dataset.v ?? cell.textContent : "";
            return own === "" || isNaN(own) ? own : Number(own);
          };
          const rows = [...body.rows].map((row) => [value(row), row]);
          // What has no number, as a text, comes last.
          rows.sort(([a], [b]) => {
            if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
            return (a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1);
          });
          body.append(...rows.map(([, row]) => row));
        });
      });
    }
  }

  sorting();
  library().then(() => {
    for (const each of document.querySelectorAll(".live")) each.hidden = false;
    document.documentElement.classList.add("ready");
    const redraws = [];
    if (data.curves.cells.length) redraws.push(curves());
    redraws.push(finals());
    dark.addEventListener("change", () => redraws.forEach((redraw) => redraw()));
    document.documentElement.dataset.drawn = "yes";
  }).catch((error) => {
    document.documentElement.classList.remove("ready");
    for (const each of document.querySelectorAll(".live")) each.hidden = true;
    const status = byId("status");
    status.hidden = false;
    status.textContent = `Interactive figures cannot be drawn here (${error.message}). `
      + "The static pictures show the same.";
  });
  for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
})();
