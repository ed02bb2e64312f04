mod attacks;
mod batches;
mod limits;
mod proved;
mod world;
