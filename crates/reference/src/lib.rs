//! The scheme written as the paper writes it, on arkworks: oracle for the tests and baseline for the benchmarks.
