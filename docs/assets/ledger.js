// Narrows the ledger's tables by choice and by words, counts what is left, and keeps the choice in the page's address: a
// link to ledger/?verdict=does-not-hold shows these. Without scripts styles narrow by choice (tools/hooks/ledger_page.py).
const form = document.querySelector(".ledger-filter")
const sections = [...document.querySelectorAll(".ledger-part")].map((part) => [part, [...part.querySelectorAll("tbody tr")]])
const texts = new Map()
const plain = (words) => words.toLowerCase().replace(/(?<=\d),(?=\d|\s|$)/g, "") // 289,661 as 289661
const grouped = (words) => words.replace(/(?<=\d)\s(?=\d{3}(?!\d))/g, "") // 289 661, which may also be two numbers
const text = (row) => texts.get(row) ?? texts.set(row, plain(row.textContent)).get(row) // read when words are searched

function narrow() {
  const chosen = [...new FormData(form)].filter(([, value]) => value.trim())
  const asked = [plain(form.q.value), grouped(plain(form.q.value))].map((words) => words.split(/\s+/).filter(Boolean))
  const others = chosen.filter(([name]) => name !== "q")
  let shown = 0, all = 0
  for (const [part, rows] of sections) {
    let left = 0
    for (const row of rows) {
      row.hidden = !others.every(([name, value]) => row.dataset[name] === value) || !asked.some((words) => words.every((word) => text(row).includes(word)))
      left += !row.hidden
    }
    part.hidden = part.previousElementSibling.hidden = !left
    part.style.setProperty("--rows", left)
    shown += left
    all += rows.length
  }
  form.querySelector("output").textContent = chosen.length ? `${shown} of ${all}` : ""
  return new URLSearchParams(chosen).toString()
}

form.addEventListener("submit", (event) => event.preventDefault())
form.addEventListener("input", () => {
  const query = narrow()
  history.replaceState(null, "", location.pathname + (query && `?${query}`))
})
let asked = false
for (const [name, value] of new URLSearchParams(location.search)) if (form.elements[name]) [form.elements[name].value, asked] = [value, true]
if (asked && narrow() && location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView()
