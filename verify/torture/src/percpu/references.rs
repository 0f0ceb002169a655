//! Big references that are given out while somebody kills them, one after the other.
//!
//! What is known of a value stands in a static, and its memory stays for some time after its
//! release: so that one that is released too early, or twice, is a fault that is counted.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use quiescence::sync::{BigRef, BigRefHandle};

use crate::canary::end;
use crate::context::{DROPPED_WRONGLY, ThreadContext};
use crate::kinds::{FaultKind, Operation};
use crate::pool::lock;
use crate::random::Random;

/// Handles that a thread keeps.
const HANDLES: usize = 8;

/// References that are kept after they were killed: their memory stays for as long.
const KILLED_KEPT: usize = 64;

/// What is known of a value: the handles that somebody has, and how often it was released.
#[derive(Debug)]
struct Life {
    held: AtomicU64,
    released: AtomicU64,
}

impl Life {
    /// Of a value that never was.
    const fn over() -> Self {
        Self { held: AtomicU64::new(0), released: AtomicU64::new(1) }
    }

    fn is_over(&self) -> bool {
        // Acquire: pairs with the Release in the drops of the value and of handles; the next value
        // begins after them.
        self.released.load(Acquire) != 0 && self.held.load(Acquire) == 0
    }
}

/// More than there are values that somebody still has.
static LIVES: [Life; 1024] = [const { Life::over() }; 1024];

static RELEASED: AtomicU64 = AtomicU64::new(0);

/// What a big reference is to: one of the lives.
#[derive(Debug)]
struct Value(usize);

impl Value {
    /// A value whose life no other thread has; looked for from a number on. `None` if all are in
    /// use.
    fn begin(from: u64) -> Option<Self> {
        let count = LIVES.len();
        let mut places = (0..count).map(|i| (from as usize).wrapping_add(i) % count);
        let value = Self(places.find(|&place| LIVES[place].is_over())?);
        value.life().released.store(0, Relaxed);
        Some(value)
    }

    fn life(&self) -> &'static Life {
        &LIVES[self.0]
    }

    fn is_alive(&self) -> bool {
        self.life().released.load(Relaxed) == 0
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        let life = self.life();
        let held = life.held.load(Acquire);
        // Release: pairs with the Acquire in `is_over`; from then on the life may be another
        // value's.
        if life.released.fetch_add(1, Release) != 0 || held != 0 {
            DROPPED_WRONGLY.fetch_add(1, Relaxed);
        }
        RELEASED.fetch_add(1, Release); // pairs with the Acquire in `Tools::close`
    }
}

/// A handle that is counted.
#[derive(Debug)]
pub(crate) struct Held(BigRefHandle<Value>);

impl Held {
    fn new(handle: BigRefHandle<Value>) -> Self {
        handle.life().held.fetch_add(1, Relaxed);
        Self(handle)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.life().held.fetch_sub(1, Release); // pairs with the Acquire in the value's drop
    }
}

/// The reference of the moment.
#[derive(Debug)]
pub(crate) struct References {
    current: Mutex<Arc<BigRef<Value>>>,
    /// Values that there have been.
    values: AtomicU64,
}

impl References {
    pub(crate) fn new() -> Self {
        let first = Value::begin(0).expect("none is in use");
        Self { current: Mutex::new(Arc::new(BigRef::new(first))), values: AtomicU64::new(1) }
    }

    /// Refers to the value of the moment.
    pub(crate) fn refer(
        &self,
        context: &ThreadContext,
        handles: &mut VecDeque<Held>,
        random: &Random,
    ) {
        if context.has_died() {
            return; // what the handles lead to may be gone already
        }
        let reference = Arc::clone(&lock(&self.current));
        for _ in 0..8 {
            let Some(handle) = reference.try_get().map(Held::new) else { break };
            context.did(Operation::BigRefGet);
            context.expect(handle.0.is_alive(), FaultKind::Freed, "BigRef", || {
                format!("the value of life {} was had, and is released", handle.0.0)
            });
            if random.one_in(4) {
                handles.push_back(Held::new(handle.0.clone()));
            }
            if random.one_in(4) {
                handles.push_back(handle);
            }
        }
        while handles.len() > HANDLES {
            handles.pop_front();
        }
    }

    /// Kills one after the other until the run is over.
    pub(crate) fn kill(&self, context: &ThreadContext, random: &Random) {
        let mut killed = VecDeque::new();
        context.repeat(Operation::BigRefKill, 1, random, |random| {
            let Some(old) = self.replace() else {
                return thread::yield_now(); // until somebody gives a handle back
            };
            let is_killed = old.kill() && !old.kill() && old.try_get().is_none();
            context.expect(is_killed, FaultKind::Freed, "BigRef", || {
                "it was not killed once, or gave something out afterwards".to_owned()
            });
            killed.push_back(old);
            if killed.len() > KILLED_KEPT && !context.has_died() {
                killed.pop_front();
            }
            thread::sleep(Duration::from_micros(random.below(500)));
        });
        end(context, killed);
    }

    /// Puts a big reference to the next value in place of the one that is there.
    fn replace(&self) -> Option<Arc<BigRef<Value>>> {
        let value = Value::begin(self.values.load(Relaxed))?;
        self.values.fetch_add(1, Relaxed);
        Some(mem::replace(&mut *lock(&self.current), Arc::new(BigRef::new(value))))
    }

    /// When all threads have ended: looks for what is lost.
    pub(crate) fn close(&self, context: &ThreadContext) {
        lock(&self.current).kill();
        // Acquire: pairs with the Release in the drop.
        let (made, released) = (self.values.load(Relaxed), RELEASED.load(Acquire));
        let is_right = made == released && DROPPED_WRONGLY.load(Relaxed) == 0;
        context.expect(is_right, FaultKind::Freed, "BigRef", || {
            format!("{made} values had references, {released} are released")
        });
    }
}
