mod attacks;
mod batches;
mod limits;
mod world;
