// Writes mathematics as HTML and MathML while the site is built, so that no script runs in the reader's browser.
// In: a JSON list of [formula, is a block]. Out: a JSON list of HTML. A formula that KaTeX does not know is an error.
import katex from "katex";
import { readFileSync } from "node:fs";

const formulas = JSON.parse(readFileSync(0, "utf8"));
const render = ([formula, displayMode]) =>
  katex.renderToString(formula, { displayMode, output: "htmlAndMathml", throwOnError: true, strict: "error" });
process.stdout.write(JSON.stringify(formulas.map((item) => {
  try {
    return { html: render(item) };
  } catch (error) {
    return { error: error.message };
  }
})));
