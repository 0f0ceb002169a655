//! Bounded memory, explored: [`grace::limit`] executed by threads that retire in sections and
//! outside, run callbacks, and end; with a worker, and the two words of the domain touched one at a
//! time.
//!
//! Grace periods are as short as they can be: an object is ready as soon as every section has ended
//! that was open when it was retired; when it is run is any thread's choice. The words are added to
//! with relaxed order, and loaded so by a thread that is over the limit: a load may find an old
//! value, though none that is older than what its thread has put there itself. Whatever else passes
//! from thread to thread does so under a queue's lock.
//!
//! - **Bounded.** What waits is at most the limit, or one object that is larger, and what threads
//!   are over it: one object each. What a thread that has ended was over is settled; or it is the
//!   business of the thread that was running its queue just then, who does not leave it before it
//!   is paid.
//! - **Nothing is freed under a section**, nor by a thread in one.
//! - **Nothing is lost.** What waits or may be retired is charged, in every state; in the end
//!   nothing is charged.
//! - **No thread waits for anything but sections.** From every state all can end, though the worker
//!   blocks in a callback until they have.
//! - **No callback runs inside of itself** for queueing itself anew.
//!
//! `worlds/limit.toml` lists the rules, with what comes of leaving each out.
//!
//! Reading order: `scenario`, `world`, `retire`, `run`.

mod explore;
mod retire;
mod run;
mod scenario;
mod world;

pub use explore::LIMITED;
