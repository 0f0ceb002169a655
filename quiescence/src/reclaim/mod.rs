//! Reclamation: callbacks from the call that queues them until they have run, and the limit on
//! memory that waits.
//!
//! - [`domain_state`]: the state of a domain, with its parts: charges, [`thread_queue`], `queues`
//!   and [`head_queue`]; references to it, and the list of those in use.
//! - [`by_address`]: tables with one entry for each domain.
//! - [`stream`]: the callbacks of one thread, written one after the other.
//! - [`llist`]: a lock-free list that any thread pushes on and one thread takes as a whole.
//! - [`head`]: what an object carries to wait without memory of the library's.
//! - `at_limit`: what a thread does at the limit, and when its section has ended.
//! - [`defer`]: the ways in which a callback is queued, and who runs it; with the road of a retired
//!   object. [`unlink`]: room for one that replaces another.
//! - [`retire`], [`weigh`]: what can be retired; the memory that a value owns. [`free`]: the kinds
//!   of callbacks.
//! - [`running`]: the callbacks that a thread is running.
//! - [`worker`]: the library's own thread, which runs callbacks and drives grace periods.
//! - [`cache`]: blocks of memory that a thread keeps for the next object.
//! - [`local`]: what a thread keeps in each domain: its slot and its queue.
//! - [`debug_objects`]: the table of objects that wait, in a build with debug assertions.
//! - `hazards`: the domain that objects behind hazard pointers are retired in by default, and the
//!   callbacks that free such objects. `kept`: those that were protected when it was their turn;
//!   `rescan`: what frees them.
//! - `sleepable`: a sleepable domain, as far as it has been used.
//!
//! May import: [`os`](crate::os), [`event`](crate::event), `percpu`, [`hazard`](crate::hazptr),
//! [`gp`](crate::gp), `srcu`.

pub(crate) mod at_limit;
pub(crate) mod by_address;
pub(crate) mod cache;
pub(crate) mod debug_objects;
pub(crate) mod defer;
pub(crate) mod domain_state;
pub(crate) mod free;
pub(crate) mod head;
pub(crate) mod hazards;
pub(crate) mod kept;
pub(crate) mod llist;
pub(crate) mod local;
pub(crate) mod rescan;
pub(crate) mod retire;
pub(crate) mod running;
pub(crate) mod sleepable;
pub(crate) mod stream;
pub(crate) mod unlink;
pub(crate) mod weigh;
pub(crate) mod worker;

pub(crate) use domain_state::head_queue;
pub(crate) use domain_state::thread_queue;
