"use strict";
const assert = require("node:assert");
const test = require("node:test");
const { differences, table } = require("./slither-findings.js");

const contract = (name) => ({ type: "contract", name, type_specific_fields: { parent: { type: "file", name: "a.sol" } } });
const method = (of, name) => ({ type: "function", name, type_specific_fields: { parent: contract(of) } });
const finding = (check, element) => ({ check, elements: [element] });
const report = (...detectors) => ({ success: true, results: { detectors } });

const explained = [{ detector: "timestamp", at: ["A.f", "A.g", "A.g"], why: "Days." }];
const all = ["f", "g", "g"].map((name) => finding("timestamp", method("A", name)));

test("what is explained is found", () => {
  assert.deepStrictEqual(differences(report(...all), explained), []);
});

test("a new finding is named, with its variable", () => {
  const variable = { type: "variable", name: "x", type_specific_fields: { parent: method("A", "f") } };
  const lines = differences(report(...all, finding("uninitialized-local", variable)), explained);
  assert.deepStrictEqual(lines, ["uninitialized-local at A.f.x: found 1, explained 0"]);
});

test("a second finding at an explained place is named", () => {
  const lines = differences(report(...all, finding("timestamp", method("A", "f"))), explained);
  assert.deepStrictEqual(lines, ["timestamp at A.f: found 2, explained 1"]);
});

test("an explanation of what is gone is named", () => {
  const lines = differences(report(...all.slice(0, 2)), explained);
  assert.deepStrictEqual(lines, ["timestamp at A.g: found 1, explained 2"]);
});

test("a report of a failure explains nothing", () => {
  assert.deepStrictEqual(differences({ success: false, error: "no compiler" }, []), ["Slither failed: no compiler"]);
});

test("a clean report without detectors is read", () => {
  assert.deepStrictEqual(differences({ success: true, results: {} }, []), []);
});

test("the table names a place once", () => {
  assert.match(table(explained), /\| timestamp \| `A\.f`, `A\.g` \(2\) \| Days\. \|$/);
});
