mod attacks;
mod batches;
mod limits;
mod proved;
mod records;
mod world;
