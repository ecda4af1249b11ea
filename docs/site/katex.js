// Draws formulas on every page; the library lies beside it, so that no network is needed.
document$.subscribe(({ body }) => {
  const delimiters = [
    { left: "$$", right: "$$", display: true },
    { left: "\\(", right: "\\)", display: false },
    { left: "\\[", right: "\\]", display: true },
  ];
  // Formulas of notebooks are as they were written.
  for (const notebook of body.querySelectorAll(".jupyter-wrapper .jp-RenderedMarkdown, .jupyter-wrapper .jp-RenderedHTMLCommon")) {
    renderMathInElement(notebook, {
      delimiters: [...delimiters, { left: "$", right: "$", display: false }],
    });
  }
  renderMathInElement(body, { delimiters });
});
