//! Steps of a protocol that can be left out, to see whether a checker notices.
//!
//! A machine or an engine lists its steps in a constant `STEPS`, and asks its parameter of type
//! [`Steps`] before each. Production code uses [`Intact`], which leaves none out and costs nothing.
//! For each step, the explorer must find the harm of leaving it out, or record that it is harmless.

/// Which steps are left out.
pub trait Steps: Copy + core::fmt::Debug + Eq + core::hash::Hash {
    /// Whether this step is left out.
    fn omits(&self, step: &'static str) -> bool;
}

/// All steps are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Intact;

impl Steps for Intact {
    #[inline(always)]
    fn omits(&self, _: &'static str) -> bool {
        false
    }
}

/// All but one step: a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Without(pub &'static str);

impl Steps for Without {
    fn omits(&self, step: &'static str) -> bool {
        self.0 == step
    }
}
