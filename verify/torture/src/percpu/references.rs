//! Big references that are given out while somebody kills them, one after the other.
//!
//! What they are to knows whether it is alive ([`Canary`]), and its memory stays for some time
//! after its release: so that one that is released too early, or twice, is a fault that is counted.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex};

use quiescence::sync::{BigRef, BigRefHandle};

use super::{Canary, FaultKind, Live, Operation, ThreadContext, end, lock};
use crate::canary::{Kept, OBJECTS_KEPT};

/// Handles that a thread keeps.
const HANDLES: usize = 8;

static LIVE: Live = Live::none();

/// Releases. In a static: a value that is released twice may not lead anywhere.
static RELEASED: AtomicU64 = AtomicU64::new(0);

/// What a big reference is to. The object itself would not notice a second release.
pub(crate) struct Value(Arc<Canary>);

impl Drop for Value {
    fn drop(&mut self) {
        RELEASED.fetch_add(1, Release); // pairs with the Acquire in `References::close`
    }
}

/// Handles, and the serials of what they are to; oldest first.
pub(crate) type Handles = VecDeque<(BigRefHandle<Value>, u64)>;

/// The reference of the moment.
pub(crate) struct References(Mutex<Arc<BigRef<Value>>>);

impl References {
    pub(crate) fn new() -> Self {
        let first = Arc::new(Canary::new(LIVE.next_serial(), &LIVE));
        mem::forget(Arc::downgrade(&first)); // its memory stays for ever
        Self(Mutex::new(Arc::new(BigRef::new(Value(first)))))
    }

    /// Refers to the value of the moment.
    pub(crate) fn refer(&self, context: &ThreadContext, handles: &mut Handles) {
        if context.has_died() {
            return; // what the handles lead to may be gone already
        }
        let reference = Arc::clone(&lock(&self.0));
        for _ in 0..8 {
            let Some(handle) = reference.try_get() else { break };
            context.did(Operation::BigRefGet);
            let serial = handle.0.loaded(context, "BigRef");
            if context.one_in(4) {
                handles.push_back((handle.clone(), serial));
            }
            handle.0.expect(context, "BigRef", serial);
            if context.one_in(4) {
                handles.push_back((handle, serial));
            }
        }
        handles.iter().for_each(|(handle, serial)| handle.0.expect(context, "BigRef", *serial));
        while handles.len() > HANDLES && !context.has_died() {
            handles.pop_front();
        }
    }

    /// Kills one after the other until the run is over.
    pub(crate) fn kill(&self, context: &ThreadContext) {
        let (mut killed, mut kept) = (VecDeque::new(), Kept::default());
        context.rounds(Operation::BigRefKill, || {
            context.did(Operation::BigRefKill);
            let new = Value(kept.keep(Canary::new(LIVE.next_serial(), &LIVE)));
            let old = mem::replace(&mut *lock(&self.0), Arc::new(BigRef::new(new)));
            let is_killed = old.kill() && !old.kill() && old.try_get().is_none();
            context.expect(is_killed, FaultKind::Freed, "BigRef", || {
                "it was not killed once, or gave something out afterwards".to_owned()
            });
            killed.push_back(old);
            // Its own memory stays for as long as the object's.
            if killed.len() > OBJECTS_KEPT && !context.has_died() {
                killed.pop_front();
            }
            context.sleep(500);
        });
        end(context, (kept, killed));
    }

    /// When all threads have ended: looks for what is lost.
    pub(crate) fn close(&self, context: &ThreadContext) {
        lock(&self.0).kill();
        LIVE.expect(context, "BigRef", 0);
        // Acquire: pairs with the Release in the drop.
        let (made, released) = (LIVE.serial.load(Relaxed), RELEASED.load(Acquire));
        context.equal(FaultKind::Freed, "BigRef", "values that were released", released, made);
    }
}
