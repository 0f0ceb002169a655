//! A filter of `tracing-subscriber` that can be replaced while threads read it: as
//! [`tracing_subscriber::reload`], with an [`ArcCell`] in place of its lock.
//!
//! `reload::Layer` takes a reader-writer lock for each question that a callsite asks, so that all
//! threads write one cache line for each event. A load of an `ArcCell` writes the thread's own.
//!
//! ```
//! use tracing_reload::Reload;
//! use tracing_subscriber::filter::LevelFilter;
//! use tracing_subscriber::prelude::*;
//!
//! let (filter, handle) = Reload::new(LevelFilter::WARN);
//! let subscriber = tracing_subscriber::registry()
//!     .with(tracing_subscriber::fmt::layer().with_filter(filter));
//! tracing::subscriber::with_default(subscriber, || {
//!     assert!(!tracing::enabled!(tracing::Level::INFO));
//!     handle.reload(LevelFilter::INFO);
//!     assert!(tracing::enabled!(tracing::Level::INFO));
//! });
//! ```

use std::sync::Arc;

use quiescence::ArcCell;
use tracing::level_filters::LevelFilter;
use tracing::metadata::Metadata;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, callsite};
use tracing_subscriber::layer::{Context, Filter};

/// A filter whose place another one may take, by its [`Handle`].
///
/// Each question is put to the filter that is there at that moment. One that keeps state by spans,
/// as `EnvFilter` does with directives for fields, knows of no span that began before it came: the
/// same is true of `tracing_subscriber::reload`.
#[derive(Debug)]
pub struct Reload<F: Send + Sync + 'static> {
    current: Arc<ArcCell<F>>,
}

/// What a [`Reload`]'s filter is replaced by. Clones lead to the same one.
#[derive(Debug)]
pub struct Handle<F: Send + Sync + 'static> {
    current: Arc<ArcCell<F>>,
}

impl<F: Send + Sync + 'static> Reload<F> {
    /// The filter that is there at first, and what replaces it.
    pub fn new(first: F) -> (Self, Handle<F>) {
        // What a filter owns is not known: it counts for its own bytes.
        let current = Arc::new(ArcCell::with_weight(Arc::new(first), |_| size_of::<F>()));
        (Self { current: Arc::clone(&current) }, Handle { current })
    }
}

impl<F: Send + Sync + 'static> Handle<F> {
    /// Puts a filter in the place of the one that is there, and has all callsites ask anew what
    /// interest there is in them. The old one is dropped within 10 ms, once no thread asks it.
    ///
    /// A program with one subscriber installs it as the global default, or calls this on a thread
    /// that has it as its default: `tracing` asks the calling thread's subscriber only, and with
    /// none there it takes every callsite for disabled. `tracing_subscriber::reload` is the same.
    pub fn reload(&self, new: F) {
        self.current.store(Arc::new(new));
        callsite::rebuild_interest_cache();
    }

    /// The filter that is there.
    pub fn current(&self) -> Arc<F> {
        self.current.load_full()
    }
}

impl<F: Send + Sync + 'static> Clone for Handle<F> {
    fn clone(&self) -> Self {
        Self { current: Arc::clone(&self.current) }
    }
}

impl<S, F: Filter<S> + Send + Sync + 'static> Filter<S> for Reload<F> {
    fn enabled(&self, meta: &Metadata<'_>, cx: &Context<'_, S>) -> bool {
        self.current.load().enabled(meta, cx)
    }

    fn callsite_enabled(&self, meta: &'static Metadata<'static>) -> Interest {
        self.current.load().callsite_enabled(meta)
    }

    fn event_enabled(&self, event: &Event<'_>, cx: &Context<'_, S>) -> bool {
        self.current.load().event_enabled(event, cx)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.current.load().max_level_hint()
    }

    fn on_new_span(&self, attrs: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        self.current.load().on_new_span(attrs, id, ctx);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, ctx: Context<'_, S>) {
        self.current.load().on_record(id, values, ctx);
    }

    fn on_enter(&self, id: &Id, ctx: Context<'_, S>) {
        self.current.load().on_enter(id, ctx);
    }

    fn on_exit(&self, id: &Id, ctx: Context<'_, S>) {
        self.current.load().on_exit(id, ctx);
    }

    fn on_close(&self, id: Id, ctx: Context<'_, S>) {
        self.current.load().on_close(id, ctx);
    }
}
