// Narrows the ledger's tables to the rows that hold every word typed. Without scripts all rows are there.
const box = document.querySelector(".ledger-filter");
const rows = [...document.querySelectorAll("table.ledger tbody tr")].map((row) => [row, row.textContent.toLowerCase()]);
box.hidden = false;
box.querySelector("input").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const [row, text] of rows) {
    row.hidden = !words.every((word) => text.includes(word));
    shown += !row.hidden;
  }
  for (const table of document.querySelectorAll("table.ledger")) {
    const empty = !table.querySelector("tbody tr:not([hidden])");
    table.closest(".md-typeset__scrollwrap, table").hidden = empty;
    for (let above = table.closest(".md-typeset__scrollwrap, table").previousElementSibling; above?.matches("h2"); above = null) {
      above.hidden = empty;
    }
  }
  box.querySelector("output").textContent = words.length ? `${shown} of ${rows.length}` : "";
});
