//! The filter that is asked is the one that is there.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use tracing::{Event, Level, dispatcher};
use tracing_reload::Reload;
use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use tracing_subscriber::layer::Context;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{Layer, Registry};

/// Counts the events that pass.
#[derive(Clone, Default)]
struct Seen(Arc<AtomicUsize>);

impl Layer<Registry> for Seen {
    fn on_event(&self, _: &Event<'_>, _: Context<'_, Registry>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Seen {
    fn take(&self) -> usize {
        self.0.swap(0, SeqCst)
    }
}

#[test]
fn events_pass_as_the_new_filter_says() {
    let seen = Seen::default();
    let (filter, handle) = Reload::new(LevelFilter::WARN);
    let subscriber = tracing_subscriber::registry().with(seen.clone().with_filter(filter));
    tracing::subscriber::with_default(subscriber, || {
        let info_and_warn = || {
            tracing::info!("info");
            tracing::warn!("warn");
            seen.take()
        };
        assert_eq!(info_and_warn(), 1);
        handle.reload(LevelFilter::INFO);
        assert_eq!((info_and_warn(), *handle.current()), (2, LevelFilter::INFO));
        handle.clone().reload(LevelFilter::OFF);
        assert_eq!(info_and_warn(), 0);
    });
}

#[test]
fn filters_that_look_at_spans_are_told_of_them() {
    let seen = Seen::default();
    let quiet = || EnvFilter::new("off");
    let (filter, handle) = Reload::new(EnvFilter::new("[work{id=7}]=debug"));
    let subscriber = tracing_subscriber::registry().with(seen.clone().with_filter(filter));
    tracing::subscriber::with_default(subscriber, || {
        let work = |id: u32| {
            let _span = tracing::info_span!("work", id).entered();
            tracing::debug!("in it");
            seen.take()
        };
        assert_eq!((work(7), work(8)), (1, 0));
        handle.reload(quiet());
        assert_eq!(work(7), 0);
    });
}

#[test]
fn threads_log_while_it_is_replaced() {
    let seen = Seen::default();
    let (filter, handle) = Reload::new(LevelFilter::WARN);
    let subscriber = tracing_subscriber::registry().with(seen.clone().with_filter(filter));
    let dispatch = dispatcher::Dispatch::new(subscriber);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                dispatcher::with_default(&dispatch, || {
                    (0..2_000).for_each(|_| tracing::error!("passes in any case"));
                });
            });
        }
        // Where there is one subscriber, `tracing` asks the default subscriber of the thread that
        // calls `reload`.
        dispatcher::with_default(&dispatch, || {
            for round in 0..50 {
                let level = if round % 2 == 0 { Level::ERROR } else { Level::TRACE };
                handle.reload(LevelFilter::from_level(level));
            }
        });
    });
    assert_eq!(seen.take(), 4_000);
}
