mod attacks;
mod batches;
mod floods;
mod limits;
mod proved;
mod records;
mod world;
