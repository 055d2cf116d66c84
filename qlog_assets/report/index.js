"use strict";
// Hides what does not hold every word of the search. The page says everything without it.
(() => {
  const form = document.getElementById("filter");
  const field = document.getElementById("words");
  const found = document.getElementById("found");
  const holds = (element, words) => words.every((word) => element.dataset.words.includes(word));
  const apply = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let tables = 0;
    for (const month of document.querySelectorAll(".month")) {
      let anything = false;
      for (const article of month.querySelectorAll("article")) {
        const rows = [...article.querySelectorAll("li[data-words]")];
        for (const row of rows) {
          row.hidden = !holds(row, words);
          tables += row.hidden ? 0 : 1;
        }
        article.hidden = rows.length ? rows.every((row) => row.hidden) : !holds(article, words);
        anything = anything || !article.hidden;
      }
      month.hidden = !anything;
    }
    found.textContent = words.length ? (tables === 1 ? "1 table" : `${tables} tables`) : "";
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  field.addEventListener("input", apply);
  apply();
})();
