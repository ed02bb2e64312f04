#!/usr/bin/env node
// Writes abi/<Contract>.json (interface and creation code) from forge's artifacts, so that the Rust crates build
// without forge. With --check it only compares and fails when a file is out of date.
"use strict";
const fs = require("fs");
const path = require("path");

const CONTRACTS = [
  "BlindedInbox", "CommitteeRegistry", "DepositPortal", "EncryptionKeyVerifier", "FeeVault", "ForcedQueue",
  "HintRegistry", "HintVerifier", "MemberStakes", "OutputRegistry",
];
// Contracts that another one deploys with itself and passes calls on to: its functions take what theirs take, by their
// names, and end with their errors.
const WITHIN = { BlindedInbox: "SequencerFaults", HintRegistry: "HintJudge" };
const checkOnly = process.argv.includes("--check");
let stale = false;

const artifactOf = (name) => JSON.parse(fs.readFileSync(path.join(__dirname, "out", `${name}.sol`, `${name}.json`), "utf8"));

function abiOf(name) {
  const { abi } = artifactOf(name);
  if (!WITHIN[name]) return abi;
  const inner = artifactOf(WITHIN[name]).abi;
  const same = (item) => inner.find((other) => other.type === "function" && other.name === item.name);
  const known = new Set(abi.filter((item) => item.type === "error").map((item) => item.name));
  const named = abi.map((item) => (item.type === "function" && same(item)) || item);
  return named.concat(inner.filter((item) => item.type === "error" && !known.has(item.name)));
}

for (const name of CONTRACTS) {
  const text = JSON.stringify({ abi: abiOf(name), bytecode: artifactOf(name).bytecode.object }, null, 1) + "\n";
  const target = path.join(__dirname, "abi", `${name}.json`);
  const present = fs.existsSync(target) ? fs.readFileSync(target, "utf8") : null;
  if (present === text) continue;
  if (checkOnly) {
    console.error(`contracts/abi/${name}.json is not what the sources compile to: run scripts/contracts abi`);
    stale = true;
  } else {
    fs.mkdirSync(path.dirname(target), { recursive: true });
    fs.writeFileSync(target, text);
    console.log(`wrote contracts/abi/${name}.json`);
  }
}
process.exit(stale ? 1 : 0);
