// Where everything stands in memory: the map at the head of GtResidues.sol, in numbers.
"use strict";
const assert = require("assert");

const WORD = 32;
/** Bytes of an element: twelve words for each of the three moduli. */
const ELEMENT = 36 * WORD;

/** Regions in order, with their lengths in bytes. */
const REGIONS = [
  ["A", 0x200, ELEMENT], // the accumulator
  ["T", 0x680, ELEMENT], // sums of products before their reduction
  ["B", 0xb00, ELEMENT], // the other operand of a product
  ["VALUES", 0xf80, 24 * WORD], // A at u = ±i modulo M1 and M2
  ["MINUS", 0x1280, 6 * WORD], // products at u = −i
  ["SUMS", 0x1580, 12 * WORD], // x + y of A and of B modulo M0
  ["FROBENIUS", 0x1900, 3 * ELEMENT],
  ["DIGITS", 0x2680, 66 * WORD],
  ["TABLE", 0x2ec0, 32 * ELEMENT],
];
const at = {};
let end = 0;
for (const [name, from, length] of REGIONS) {
  assert(from >= end, `${name} overlaps what stands before it`);
  at[name] = from;
  end = from + length;
}

/** Twelve words modulo M_r from `base`: coefficient k's x (part 0) and y (part 1). */
const coefficient = (base, r, k, part) => base + WORD * (12 * r + 2 * k + part);
/** An operand modulo M1 or M2: its six values at i (side 0), then those at −i (side 1). */
const value = (base, r, k, side) => base + WORD * (12 * r + 6 * side + k);
/** The values of A lie alike, without words for M0. */
const valueOfA = (r, k, side) => value(at.VALUES, r - 1, k, side);
const minus = (k) => at.MINUS + WORD * k;
/** Sums of A's (operand 0) or B's (operand 1) parts. */
const sum = (operand, k) => at.SUMS + WORD * (6 * operand + k);

/** In the order of the encoding, c0.c0, c0.c1, c0.c2, c1.c0, …: the word of each of the twelve coefficients. */
const POWERS = [0, 2, 4, 1, 3, 5];
const bytes = POWERS.flatMap((k) => [2 * k, 2 * k + 1]).map((word) => word.toString(16).padStart(2, "0"));
const ORDER = `0x${bytes.join("").padEnd(64, "0")}`;
/** Name in the tower of the coefficient of w^k. */
const NAMES = [];
POWERS.forEach((k, index) => (NAMES[k] = `c${Math.floor(index / 3)}.c${index % 3}`));

module.exports = { WORD, ELEMENT, at, ARENA_END: end, coefficient, value, valueOfA, minus, sum, ORDER, NAMES };
