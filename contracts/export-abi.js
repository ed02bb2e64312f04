#!/usr/bin/env node
// Writes abi/<Contract>.json (interface and creation code) from forge's artifacts, so that the Rust crates build
// without forge. With --check it only compares and fails when a file is out of date.
"use strict";
const fs = require("fs");
const path = require("path");

const CONTRACTS = [
  "BlindedInbox", "CommitteeRegistry", "DepositPortal", "FeeVault", "ForcedQueue", "HintRegistry", "HintVerifier",
  "OutputRegistry",
];
const checkOnly = process.argv.includes("--check");
let stale = false;

for (const name of CONTRACTS) {
  const artifact = JSON.parse(fs.readFileSync(path.join(__dirname, "out", `${name}.sol`, `${name}.json`), "utf8"));
  const text = JSON.stringify({ abi: artifact.abi, bytecode: artifact.bytecode.object }, null, 1) + "\n";
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
