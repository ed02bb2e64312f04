// The moduli, their roots of −1 and every constant derived from them and from BLS12-381's prime. Whoever doubts a
// number in a generated file finds its definition here.
"use strict";
const assert = require("assert");

const P = 0x1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaabn;
const M0 = 1n << 256n;
const M1 = (M0 - 1n) / 3n;
const M2 = 7n * (1n << 253n) - 543n;
const MODULI = [M0, M1, M2];
/** Montgomery's factor: V stands for V·R^−1 modulo p. */
const R = 1n << 512n;

const mod = (a, m) => ((a % m) + m) % m;
function inverse(a, m) {
  let [r0, r1, s0, s1] = [m, mod(a, m), 0n, 1n];
  while (r1 !== 0n) {
    const q = r0 / r1;
    [r0, r1, s0, s1] = [r1, r0 - q * r1, s1, s0 - q * s1];
  }
  assert.equal(r0, 1n, "no inverse: not coprime");
  return mod(s0, m);
}
function power(a, n, m) {
  let result = 1n;
  for (let base = mod(a, m); n !== 0n; n >>= 1n) {
    if (n & 1n) result = (result * base) % m;
    base = (base * base) % m;
  }
  return result;
}

for (const [a, b] of [[M0, M1], [M0, M2], [M1, M2], [P, M0], [P, M1], [P, M2]]) inverse(a, b); // coprime
assert.equal(mod(M0, M1), 1n);

/** What a number is multiplied by before its residue is kept: nothing modulo M0 and M1, 2^−512 modulo M2. */
const SCALES = [1n, 1n, inverse(R, M2)];
/** The three words of the integer `v`. */
const residues = (v) => MODULI.map((m, r) => mod(v * SCALES[r], m));

// M1 is the product of the Fermat numbers F_k = 2^(2^k) + 1, k = 1 … 7, each with the root 2^(2^(k−1)); put together by
// the Chinese remainder theorem. M2: a power of the first number that is not a square.
const fermat = [1n, 2n, 3n, 4n, 5n, 6n, 7n].map((k) => ({ f: (1n << (1n << k)) + 1n, root: 1n << (1n << (k - 1n)) }));
assert.equal(fermat.reduce((product, { f }) => product * f, 1n), M1);
const root1 = mod(fermat.reduce((sum, { f, root }) => sum + root * (M1 / f) * inverse(M1 / f, f), 0n), M1);
const candidates = [2n, 3n, 5n, 7n, 11n, 13n].map((a) => power(a, (M2 - 1n) / 4n, M2));
const root2 = candidates.find((root) => mod(root * root + 1n, M2) === 0n);
assert(root2, "no root of −1 modulo M2");
/** i with i² = −1, by modulus; M0 has none. */
const ROOTS = [undefined, root1, root2];
for (const r of [1, 2]) assert.equal(mod(ROOTS[r] * ROOTS[r] + 1n, MODULI[r]), 0n);

// Added before a reduction: a multiple of p (changes nothing) and of M1 (no addition modulo M1), the first one above
// 12.5 p² whose word modulo M2 is so small that adding it to a residue stays below 2^256.
const scaled2 = (offset) => mod(offset * SCALES[2] * SCALES[2], M2);
let offset = ((25n * P * P) / 2n / (P * M1)) * P * M1;
while (scaled2(offset) + M2 >= M0) offset += P * M1;
const OFFSET = offset;

/** −2·R and 2·R modulo p: the factors that add ∓2z to a sum of products. */
const LIFTS = { minus: mod(-2n * R, P), plus: mod(2n * R, P) };

// F_p2 = F_p[u]/(u² + 1), pairs [x, y].
const multiply2 = ([a, b], [c, d]) => [mod(a * c - b * d, P), mod(a * d + b * c, P)];
function power2(a, n) {
  let result = [1n, 0n];
  for (; n !== 0n; n >>= 1n) {
    if (n & 1n) result = multiply2(result, a);
    a = multiply2(a, a);
  }
  return result;
}
/** γ_jk·R = (−1)^(jk)·ξ^(k(p^j − 1)/6)·R as two integers below p, ξ = 1 + u. */
function gamma(j, k) {
  const g = power2([1n, 1n], (BigInt(k) * (P ** BigInt(j) - 1n)) / 6n);
  const sign = (j * k) % 2 === 1 ? -1n : 1n;
  return g.map((c) => mod(sign * c * R, P));
}

const negatedInverse = mod(-inverse(P, M0), M0);
const inverseOfM1 = inverse(M1, M2);
const three = residues(mod(3n * R, P));
const third = residues(inverse(3n, P));
const square = residues(mod(R * R, P));
const lifts = { minus: residues(LIFTS.minus), plus: residues(LIFTS.plus) };

/** By name: value and comment. */
const CONSTANTS = {
  M1: [M1, "(2^256 − 1) / 3."],
  M2: [M2, "7·2^253 − 543."],
  P_LOW: [P % M0, "p mod 2^256."],
  P_HIGH: [P / M0, "p div 2^256."],
  NEGATED_INVERSE: [negatedInverse, "−1/p mod 2^256."],
  OFFSET_0: [OFFSET % M0, "OFFSET mod 2^256."],
  OFFSET_2: [scaled2(OFFSET), "2^−1024·OFFSET mod M2; below 2^256 − M2, so it is added without a reduction."],
  P_1: [P % M1, "p mod M1."],
  P_2A: [mod(P * inverse(1n << 1024n, M2), M2), "2^−1024·p mod M2."],
  P_2B: [mod(P * inverse(1n << 768n, M2), M2), "2^−768·p mod M2."],
  LIFT_1: [mod(-inverseOfM1, M2), "−1/M1 mod M2."],
  LIFT_U: [mod((1n << 768n) * inverseOfM1, M2), "2^768/M1 mod M2."],
  LIFT_V: [mod((1n << 512n) * inverseOfM1, M2), "2^512/M1 mod M2."],
  M1_NEGATED_INVERSE: [mod(M1 * negatedInverse, M0), "−M1/p mod 2^256."],
  SCALE_LOW: [SCALES[2], "2^−512 mod M2."],
  SCALE_HIGH: [mod(M0 * SCALES[2], M2), "2^−256 mod M2."],
  NEGATED_ROOT_1: [M1 - root1, "−i modulo M1, i² = −1 (see `GtProduct`)."],
  NEGATED_ROOT_2: [M2 - root2, "−i modulo M2."],
  R2_0: [square[0], "2^1024 mod p, as a number in residues: into Montgomery's form."],
  THREE_0: [three[0], "3·2^512 mod p in residues: three times."],
  THIRD_0: [third[0], "1/3 mod p in residues: a third, and out of Montgomery's form."],
  LIFT_MINUS_0: [lifts.minus[0], "−2·2^512 mod p in residues."],
  LIFT_PLUS_0: [lifts.plus[0], "2·2^512 mod p in residues."],
};
const numbers = { R2: square, THREE: three, THIRD: third, LIFT_MINUS: lifts.minus, LIFT_PLUS: lifts.plus };
for (const [name, words] of Object.entries(numbers)) {
  CONSTANTS[`${name}_1`] = [words[1], "The same modulo M1."];
  CONSTANTS[`${name}_2`] = [words[2], "The same modulo M2, scaled."];
}
for (const r of [1, 2]) {
  const [m, i] = [MODULI[r], ROOTS[r]];
  CONSTANTS[`ROOT_${r}`] = [i, `i with i² = −1 modulo M${r}.`];
  CONSTANTS[`XI_PLUS_${r}`] = [mod(1n + i, m), "ξ at i: 1 + i."];
  CONSTANTS[`XI_MINUS_${r}`] = [mod(1n - i, m), "ξ at −i: 1 − i."];
  CONSTANTS[`HALF_${r}`] = [inverse(2n, m), "1/2."];
  CONSTANTS[`HALF_ROOT_${r}`] = [mod(i * inverse(2n, m), m), "i/2."];
}

const hex = (value) => `0x${value.toString(16)}`;
/** Solidity for the named constants, each with its comment. */
function declarations(names) {
  return names.map((name) => `/// @dev ${CONSTANTS[name][1]}\nuint256 constant ${name} = ${hex(CONSTANTS[name][0])};\n`).join("");
}

module.exports = {
  P, R, M0, M1, M2, MODULI, SCALES, ROOTS, OFFSET, LIFTS, CONSTANTS, mod, inverse, gamma, hex, declarations,
};
