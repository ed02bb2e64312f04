// Statements of machine.js as text, laid out as `forge fmt` does with lines of 110 (foundry.toml).
"use strict";

const LINE_LENGTH = 110;
const flat = (tree) => (typeof tree === "string" ? tree : `${tree.call}(${tree.args.map(flat).join(", ")})`);

/** Lines of an expression behind `head`, with `tail` behind the last: on one line, or each argument on its own. */
function expression(tree, indent, head, tail) {
  const line = " ".repeat(indent) + head + flat(tree) + tail;
  if (line.length <= LINE_LENGTH || typeof tree === "string") return [line];
  const last = tree.args.length - 1;
  return [
    `${" ".repeat(indent)}${head}${tree.call}(`,
    ...tree.args.flatMap((arg, i) => expression(arg, indent + 4, "", i === last ? "" : ",")),
    `${" ".repeat(indent)})${tail}`,
  ];
}

function lines(statement, indent) {
  const space = " ".repeat(indent);
  if (statement.text !== undefined) return [space + statement.text];
  if (statement.assembly) return [`${space}assembly ("memory-safe") {`, ...all(statement.assembly, indent + 4), `${space}}`];
  if (statement.scope) return [`${space}{`, ...all(statement.scope, indent + 4), `${space}}`];
  if (statement.set) return expression(statement.tree, indent, `${statement.set} := `, "");
  if (statement.let) {
    const one = `${space}let ${statement.let} := ${flat(statement.tree)}`;
    if (one.length <= LINE_LENGTH) return [one];
    return [`${space}let ${statement.let} :=`, ...expression(statement.tree, indent + 4, "", "")];
  }
  return expression(statement, indent, "", "");
}
const all = (statements, indent) => statements.flatMap((statement) => lines(statement, indent));

/** The body of a function of a library. */
const body = (machine) => all(machine.statements, 8).join("\n");

module.exports = { body };
