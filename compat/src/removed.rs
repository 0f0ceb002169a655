//! Steps that a test takes out, to see that another one notices. Without the feature `chaos` there is nothing of it.

/// Whether `QUIESCENCE_REMOVED` names this step.
#[cfg(feature = "chaos")]
pub(crate) fn is(step: &str) -> bool {
    std::env::var("QUIESCENCE_REMOVED").is_ok_and(|removed| removed == step)
}

/// Never.
#[cfg(not(feature = "chaos"))]
#[inline(always)]
pub(crate) const fn is(_step: &str) -> bool {
    false
}
