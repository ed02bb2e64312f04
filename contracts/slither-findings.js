#!/usr/bin/env node
// What Slither finds in the contracts and why each of it stands: slither-findings.json. Writes its table into docs/l1.md,
// between <!-- slither --> and <!-- end -->.
//   --check        only compares the document, and fails when it shows another table
//   --report FILE  compares Slither's report (its --json) instead: fails at a finding that is not explained, and at an
//                  explanation of what is not found any more
"use strict";
const fs = require("fs");
const path = require("path");

const DOC = path.join(__dirname, "..", "docs", "l1.md");

/** Where a finding is: contract, function and variable, as far as they go, by its first element. */
function place(element) {
  const names = [];
  for (let at = element; at && at.type !== "file"; at = (at.type_specific_fields || {}).parent) {
    if (at.type !== "node") names.unshift(at.name);
  }
  return names.join(".");
}

const count = (list) => list.reduce((counts, item) => counts.set(item, (counts.get(item) || 0) + 1), new Map());

/** What differs between a report and the explained findings, a line each; two findings at one place count as two. */
function differences(report, explained) {
  if (!report.success) return [`Slither failed: ${report.error}`];
  const found = count((report.results.detectors || []).map(({ check, elements }) => `${check} at ${place(elements[0])}`));
  const known = count(explained.flatMap(({ detector, at }) => at.map((where) => `${detector} at ${where}`)));
  return [...new Set([...found.keys(), ...known.keys()])].sort().flatMap((finding) => {
    const [now, before] = [found.get(finding) || 0, known.get(finding) || 0];
    if (now === before) return [];
    return [`${finding}: found ${now}, explained ${before}`];
  });
}

/** The explained findings as a table. */
function table(explained) {
  const places = (at) => [...count(at)].map(([where, times]) => `\`${where}\`${times > 1 ? ` (${times})` : ""}`).join(", ");
  const rows = explained.map(({ detector, at, why }) => `| ${detector} | ${places(at)} | ${why} |`);
  return ["| finding | at | why it stands |", "|---|---|---|", ...rows].join("\n");
}

function main(args) {
  const explained = JSON.parse(fs.readFileSync(path.join(__dirname, "slither-findings.json"), "utf8"));
  if (args[0] === "--report") {
    const lines = differences(JSON.parse(fs.readFileSync(args[1], "utf8")), explained);
    if (lines.length === 0) {
      const total = explained.reduce((sum, { at }) => sum + at.length, 0);
      console.log(`Slither: ${total} findings, each explained in docs/l1.md`);
      return 0;
    }
    console.error(lines.join("\n"));
    console.error("mend what is found, or say in contracts/slither-findings.json why it stands");
    return 1;
  }
  const before = fs.readFileSync(DOC, "utf8");
  const after = before.replace(
    /(<!-- slither -->\n)[\s\S]*?(<!-- end -->)/,
    (_, start, end) => `${start}${table(explained)}\n${end}`,
  );
  if (args[0] !== "--check") {
    fs.writeFileSync(DOC, after);
  } else if (before !== after) {
    console.error("docs/l1.md does not show contracts/slither-findings.json: run contracts/slither-findings.js");
    return 1;
  }
  return 0;
}

module.exports = { differences, table };
if (require.main === module) process.exitCode = main(process.argv.slice(2));
