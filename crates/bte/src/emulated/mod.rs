//! The lanes without their processor: the files of [`crate::ifma`], compiled over vectors of plain words that carry
//! bounds ([`vector`]). Their tests run here on every machine, and what they run is proved to stay in bounds for all
//! inputs: bounds are taken of operations, not of the values at hand; either side of a selection counts; what comes from
//! memory has the bounds of everything that may lie there.

#![allow(dead_code, unused_unsafe)] // no backend is made of these; what needs features elsewhere needs none here
#![allow(clippy::needless_range_loop)] // as in `crate::ifma`
#![allow(clippy::duplicate_mod)] // the second compilation is the point
#![allow(clippy::redundant_closure)] // functions with target features need the closures that plain ones do not

#[path = "../ifma/batch.rs"]
mod batch;

#[path = "../ifma/comb.rs"]
mod comb;
#[path = "../ifma/compressed.rs"]
mod compressed;
#[path = "../ifma/convolve.rs"]
mod convolve;
#[path = "../ifma/cyclotomic.rs"]
mod cyclotomic;
#[path = "../ifma/decode.rs"]
mod decode;
#[path = "../ifma/encode.rs"]
mod encode;
#[path = "../ifma/field.rs"]
mod field;
#[path = "../ifma/generator.rs"]
mod generator;
mod kept;
#[path = "../ifma/opening.rs"]
mod opening;
#[path = "../ifma/pairing.rs"]
mod pairing;
#[path = "../ifma/points.rs"]
mod points;
#[path = "../ifma/stated.rs"]
mod stated;
#[path = "../ifma/straus.rs"]
mod straus;
#[path = "../ifma/target.rs"]
mod target;
#[path = "../ifma/tests.rs"]
mod tests;
#[path = "../ifma/tower.rs"]
mod tower;
mod vector;
