//! The machine of grace periods and its arithmetic, against models.

mod limit;
mod machine;
mod segments;
mod sequence;
mod srcu;
