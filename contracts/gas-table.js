#!/usr/bin/env node
// Writes the tables of docs/l1.md from snapshots/*.json and forge's artifacts, between <!-- gas --> or <!-- size --> and
// <!-- end -->. With --check it only compares and fails when the document shows other figures.
"use strict";
const fs = require("fs");
const path = require("path");

const DOC = path.join(__dirname, "..", "docs", "l1.md");
const SNAPSHOTS = path.join(__dirname, "snapshots");
const gas = Object.assign(
  {},
  ...fs.readdirSync(SNAPSHOTS).map((file) => JSON.parse(fs.readFileSync(path.join(SNAPSHOTS, file), "utf8"))),
);

const digits = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
const table = (head, rows) =>
  [`| ${head.join(" | ")} |`, `|${head.map(() => "---").join("|")}|`, ...rows.map((row) => `| ${row.join(" | ")} |`)].join("\n");
const of = (name) => {
  if (gas[name] === undefined) throw new Error(`no snapshot is called "${name}": run scripts/contracts gas`);
  return Number(gas[name]);
};
const perBatch = (one, many) => (of(many) - of(one)) / 32;

function gasTable() {
  const post = ["BlindedInbox.post, 1 header, whole transaction", "BlindedInbox.post, 33 headers, whole transaction"];
  const hints = ["HintRegistry.postHints, 1 batch of 100", "HintRegistry.postHints, 33 batches of 100"];
  const blobs = ["HintRegistry.postHintsInBlobs, 1 batch of 100", "HintRegistry.postHintsInBlobs, 33 batches of 100"];
  const row = (what, name, target = "") => [what, digits(of(name)), target];
  return table(
    ["what", "gas", "target"],
    [
      row("post a run of 1 header, without envelope data (whole transaction)", post[0], "≤ 300,000"),
      ["each further header of the run", digits(perBatch(...post)), "≤ 15,000"],
      [
        "each further run that they are cut into",
        digits(of("BlindedInbox.post, 3 headers in two runs, whole transaction") - of("BlindedInbox.post, 3 headers in one run, whole transaction")),
        "",
      ],
      row("of it the certificate, 3 of 4 members", "CommitteeRegistry.verifyCertificate, 3 of 4", "≤ 200,000"),
      row("… 43 of 64 members", "CommitteeRegistry.verifyCertificate, 43 of 64"),
      row("post hints, 1 batch of 100 (call)", hints[0], "≤ 300,000"),
      ["each further batch of 100", digits(perBatch(...hints)), "≤ 15,000"],
      row("post hints in blobs, 1 batch of 100 (call, without blob gas)", blobs[0]),
      ["each further batch of 100", digits(perBatch(...blobs)), ""],
      row("make hints final", "HintRegistry.finalize"),
      row("**judge one hint, 300-byte message** (`HintVerifier.verify`)", "HintVerifier.verify, 300 bytes", "≤ 3,000,000; goal 1,500,000"),
      row("… 32,768 bytes, the largest", "HintVerifier.verify, 32,768 bytes", "≤ 16,777,216"),
      row("what a challenge adds to it, 8 batches of 100", "HintRegistry.challenge, 8 batches of 100, without the check of the key"),
      row("… an entry in one element of a blob", "HintRegistry.challenge, in blobs, one element, without the check of the key"),
      row("… in two", "HintRegistry.challenge, in blobs, two elements, without the check of the key"),
      row("… the largest item", "HintRegistry.challenge, 33,151 bytes, without the check of the key"),
      row("judge one singleton release, the whole challenge without the check of a key", "HintRegistry.challenge, of a singleton release, 1 batch of 100"),
      row("… in blobs, with the rest of a challenge of ⊥", "HintRegistry.challenge, in blobs, of a singleton release, without the check of the key"),
      row("read a decrypted message from final hints, 256 bytes", "HintRegistry.readPlaintext, 256 bytes"),
      row("show two headers of one number", "BlindedInbox.slashEquivocation"),
      row("accuse of a broken promise", "BlindedInbox.accuseOmission"),
      row("answer the accusation", "BlindedInbox.answerOmission"),
      row("slash for it", "BlindedInbox.slashOmission"),
      row("force an envelope of 639 bytes", "ForcedQueue.force, envelope of 639 bytes"),
      row("… of 33,151 bytes, the largest", "ForcedQueue.force, envelope of 33,151 bytes"),
      row("force a transaction of 110 bytes", "ForcedQueue.force, transaction of 110 bytes"),
      row("a header made by L1 with 16 forced items", "BlindedInbox.postL1Header, first, 16 items"),
      row("register a committee of 4, of it 0.8 million for its encryption key", "CommitteeRegistry.registerEpoch, 4 members"),
      row("… of 64", "CommitteeRegistry.registerEpoch, 64 members"),
      row("show that members acknowledged two headers of one number", "MemberStakes.slashDouble, two certificates"),
      row("fee account: deposit", "FeeVault.deposit"),
      row("fee account: request a withdrawal", "FeeVault.requestWithdrawal, first"),
      row("fee account: claim, 1,000 accounts", "FeeVault.claim, 1,000 accounts, first"),
      row("fee account: exit, 1,000 accounts", "FeeVault.exit, 1,000 accounts"),
      row("ether to L2, no data, 100,000 gas bought at the least price, which burns as much", "DepositPortal.depositTransaction, no data"),
      row("claim an L2 state root", "OutputRegistry.propose, 1 output"),
      ["each further one of the proposal", digits((of("OutputRegistry.propose, 10 outputs") - of("OutputRegistry.propose, 1 output")) / 9), ""],
    ],
  );
}

const CONTRACTS = [
  "BlindedInbox", "CommitteeRegistry", "DepositPortal", "EncryptionKeyVerifier", "FeeVault", "ForcedQueue", "HintJudge",
  "HintRegistry", "HintVerifier", "MemberStakes", "OutputRegistry", "SequencerFaults",
];

// EIP-170: nothing longer can be deployed.
const CODE_LIMIT = 24576;

function sizeTable() {
  return table(
    ["contract", `code, bytes (limit ${digits(CODE_LIMIT)})`],
    CONTRACTS.map((name) => {
      const artifact = JSON.parse(fs.readFileSync(path.join(__dirname, "out", `${name}.sol`, `${name}.json`), "utf8"));
      const bytes = (artifact.deployedBytecode.object.length - 2) / 2;
      if (bytes > CODE_LIMIT) throw new Error(`${name} has ${bytes} bytes of code, ${CODE_LIMIT} can be deployed: split it`);
      return [`\`${name}\``, digits(bytes)];
    }),
  );
}

const TABLES = { gas: gasTable, size: sizeTable };
const before = fs.readFileSync(DOC, "utf8");
const after = before.replace(/(<!-- (gas|size) -->\n)[\s\S]*?(<!-- end -->)/g, (_, start, name, end) => `${start}${TABLES[name]()}\n${end}`);
if (process.argv.includes("--check")) {
  if (before !== after) {
    console.error("docs/l1.md does not show contracts/snapshots: run contracts/gas-table.js");
    process.exit(1);
  }
} else {
  fs.writeFileSync(DOC, after);
}
