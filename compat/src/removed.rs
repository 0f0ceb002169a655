//! Steps that a test takes out, to see that another one notices. Without the feature `chaos` there
//! is nothing of it.

/// Whether `QUIESCENCE_REMOVED` names this step. Asked once: what a signal handler executes
/// allocates nothing.
#[cfg(feature = "chaos")]
pub(crate) fn is(step: &str) -> bool {
    static REMOVED: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let removed = REMOVED.get_or_init(|| std::env::var("QUIESCENCE_REMOVED").ok());
    removed.as_deref() == Some(step)
}

/// Has quiescence leave out the step of its own that `QUIESCENCE_REMOVED` names, if it does.
#[cfg(feature = "chaos")]
pub(crate) fn tell_quiescence() {
    use quiescence::chaos::{Mutant, remove_step};
    static ONCE: std::sync::Once = std::sync::Once::new();
    let Ok(removed) = std::env::var("QUIESCENCE_REMOVED") else { return };
    let all = [
        Mutant::NoWait,
        Mutant::SkipLastReader,
        Mutant::EarlyCallbackQueue,
        Mutant::SignalToSleepers,
    ];
    if let Some(mutant) = all.into_iter().find(|mutant| format!("{mutant:?}") == removed) {
        ONCE.call_once(|| assert!(remove_step(mutant), "another step is missing already"));
    }
}

/// Nothing.
#[cfg(not(feature = "chaos"))]
#[inline(always)]
pub(crate) const fn tell_quiescence() {}

/// Never.
#[cfg(not(feature = "chaos"))]
#[inline(always)]
pub(crate) const fn is(_step: &str) -> bool {
    false
}
