//! The work queue: a worker thread that runs what it is given, in order. liburcu's hash table
//! resizes on one; its functions are exported, though no public header declares them.
//!
//! A thread that queues work exchanges the tail of a [`WaitFreeQueue`] and looks whether the worker
//! sleeps. The worker takes all there is, and sleeps on [`State`] when there is nothing; no thread
//! naps or polls in vain. The flag `RT` asks liburcu not to wake the worker, which polls instead:
//! here it is woken all the same, by one system call that does not block.
//!
//! Paused, before a fork, it stands between two batches, with no work in hand: the child makes a
//! worker of its own, and misses nothing.
//!
//! The contract of each function is that of liburcu's: pointers are valid.

mod completion;
mod state;

use std::cell::Cell;
use std::ffi::{c_int, c_ulong, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quiescence::intrusive::{QueueNode, WaitFreeQueue};

use self::completion::Completion;
use self::state::State;
use crate::fatal::fatal;
use crate::threads;

/// `struct urcu_work`: what its user embeds.
#[repr(C)]
struct Work {
    node: QueueNode,
    function: unsafe extern "C" fn(*mut Work),
}

/// What the worker calls at one of its steps.
type Hook = Option<unsafe extern "C" fn(*mut Workqueue, *mut c_void)>;

/// The steps of a worker at which its maker wants to be called, in the order of
/// `urcu_workqueue_create`.
enum Step {
    /// Before each batch: what makes sure that a grace period has passed, if the work wants that.
    GracePeriod,
    Begin,
    End,
    /// Before and after it waits for work, also where there is some already: a reader by quiescent
    /// states is offline meanwhile, or passes through one.
    BeforeWait,
    AfterWait,
    BeforePause,
    AfterPause,
}

/// `struct urcu_workqueue`, which C knows by its address.
struct Workqueue {
    queue: WaitFreeQueue,
    state: State,
    /// The CPU that the worker is to run on; any if it is negative.
    cpu: c_int,
    /// The maker's own, for the hooks; and these, of each [`Step`].
    private: *mut c_void,
    hooks: [Hook; 7],
    worker: Mutex<Option<Worker>>,
}

/// A thread, and the process that it is a thread of: a child has its number and not the thread.
#[derive(Clone, Copy)]
struct Worker {
    process: u32,
    thread: libc::pthread_t,
}

impl Worker {
    /// Waits until it has ended.
    fn join(self) {
        if self.process == std::process::id() {
            // SAFETY: joined once, by `stop`, and by no other.
            unsafe { libc::pthread_join(self.thread, ptr::null_mut()) };
        }
    }
}

thread_local! {
    /// The work queue whose worker this thread is.
    static OWN: Cell<*const Workqueue> = const { Cell::new(ptr::null()) };
}

// SAFETY: all threads queue, and what is private is only handed back to its hooks.
unsafe impl Sync for Workqueue {}

impl Workqueue {
    /// Starts a worker.
    fn start(&self) {
        extern "C" fn main(queue: *mut c_void) -> *mut c_void {
            threads::name(c"urcu-workqueue");
            // SAFETY: freed when the thread has been joined, or in a process that does not have it.
            let queue = unsafe { &*queue.cast::<Workqueue>() };
            OWN.set(queue);
            queue.work();
            ptr::null_mut()
        }
        let Some(thread) = threads::spawn(main, ptr::from_ref(self).cast_mut().cast()) else {
            fatal(format_args!("no thread for a work queue; raise the limit on threads"));
        };
        *self.worker() = Some(Worker { process: std::process::id(), thread });
    }

    fn worker(&self) -> MutexGuard<'_, Option<Worker>> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the process if the calling thread is the worker, which would wait for itself.
    fn not_on_the_worker(&self, function: &str) {
        if ptr::eq(OWN.get(), self) {
            fatal(format_args!(
                "{function} called by work of the queue would wait for it; use another thread"
            ));
        }
    }

    fn call(&self, step: Step) {
        if let Some(hook) = self.hooks[step as usize] {
            // SAFETY: by the contract of `urcu_workqueue_create`.
            unsafe { hook(ptr::from_ref(self).cast_mut(), self.private) };
        }
    }

    /// What the worker does until it is stopped. What is queued before that is done.
    fn work(&self) {
        threads::bind(self.cpu);
        self.call(Step::Begin);
        loop {
            if self.state.pause_wanted() {
                self.call(Step::BeforePause);
                self.state.pause();
                self.call(Step::AfterPause);
            }
            threads::stay_on(self.cpu);
            let ran = self.run_batch();
            if !ran && self.state.stop_wanted() {
                break;
            }
            self.call(Step::BeforeWait);
            self.state.sleep_unless(|| !self.queue.is_empty());
            self.call(Step::AfterWait);
        }
        self.call(Step::End);
    }

    /// Runs what is there. Whether anything was.
    fn run_batch(&self) -> bool {
        // SAFETY: the worker is the only consumer.
        let batch = unsafe { self.queue.only_consumer() }.take_all();
        if batch.is_empty() {
            return false;
        }
        self.call(Step::GracePeriod);
        for node in batch {
            let work = node.as_ptr().cast::<Work>();
            // SAFETY: the node of a work comes first, and it is not its user's before it is run.
            let function = unsafe { (*work).function };
            // SAFETY: by the contract of `urcu_workqueue_queue_work`.
            unsafe { function(work) };
        }
        true
    }

    /// Queues a work.
    ///
    /// # Safety
    /// `work` may be written and is the caller's alone until `function` is called with it, on the
    /// worker.
    unsafe fn add(&self, work: *mut Work, function: unsafe extern "C" fn(*mut Work)) {
        // SAFETY: by this function's contract.
        unsafe { work.write(Work { node: QueueNode::new(), function }) };
        // SAFETY: as above; the node comes first.
        unsafe { self.queue.enqueue(work.cast()) };
        self.state.wake_sleeper();
    }

    /// Stops the worker once all is done.
    fn stop(&self) {
        self.state.stop();
        let worker = self.worker().take();
        if let Some(worker) = worker {
            worker.join();
        }
    }
}

exported! {
    /// The hooks may be called on the worker, with `private`, until the queue is destroyed.
    fn quiescence_urcu_workqueue_create(
        _flags: c_ulong,
        cpu_affinity: c_int,
        private: *mut c_void,
        grace_period: Hook,
        begin: Hook,
        end: Hook,
        before_wait: Hook,
        after_wait: Hook,
        before_pause: Hook,
        after_pause: Hook
    ) -> *mut Workqueue {
        let (cpu, worker) = (cpu_affinity, Mutex::new(None));
        let hooks =
            [grace_period, begin, end, before_wait, after_wait, before_pause, after_pause];
        let (queue, state) = (WaitFreeQueue::new(), State::new());
        let workqueue = Workqueue { queue, state, cpu, private, hooks, worker };
        let workqueue = Box::into_raw(Box::new(workqueue));
        // SAFETY: from a box.
        (*workqueue).start();
        workqueue
    }

    /// Runs what is queued, and ends the worker. Null is nothing. From `create`; no thread uses it
    /// any more.
    fn quiescence_urcu_workqueue_destroy(workqueue: *mut Workqueue) {
        if workqueue.is_null() {
            return;
        }
        let workqueue = Box::from_raw(workqueue);
        workqueue.not_on_the_worker("urcu_workqueue_destroy");
        workqueue.stop();
        if !workqueue.queue.is_empty() {
            fatal(format_args!(
                "urcu_workqueue_destroy() with work that no thread runs; in a child process, \
                 create the queue's worker first"
            ));
        }
    }

    /// `work` is valid until it is run, and does not wait already.
    fn quiescence_urcu_workqueue_queue_work(
        workqueue: &Workqueue,
        work: *mut Work,
        function: unsafe extern "C" fn(*mut Work)
    ) {
        workqueue.add(work, function);
    }

    fn quiescence_urcu_workqueue_create_completion() -> *const Completion { Completion::create() }

    /// Gives back the caller's hold on a completion, once; what is queued has its own.
    fn quiescence_urcu_workqueue_destroy_completion(completion: *const Completion) {
        Completion::release(completion);
    }

    /// Has `completion` complete when all has run that was queued before.
    fn quiescence_urcu_workqueue_queue_completion(
        workqueue: &Workqueue,
        completion: *const Completion
    ) {
        Completion::queue(completion, workqueue);
    }

    /// Waits until all has run that the completion was queued behind, if anything.
    fn quiescence_urcu_workqueue_wait_completion(completion: &Completion) { completion.wait() }

    /// Waits until all has run that was queued before.
    fn quiescence_urcu_workqueue_flush_queued_work(workqueue: &Workqueue) {
        workqueue.not_on_the_worker("urcu_workqueue_flush_queued_work");
        let completion = Completion::create();
        // SAFETY: made above, and held until it is released, once, at the end.
        Completion::queue(completion, workqueue);
        (*completion).wait();
        Completion::release(completion);
    }

    /// Before a fork: returns when the worker stands still. It is not paused.
    fn quiescence_urcu_workqueue_pause_worker(workqueue: &Workqueue) {
        workqueue.not_on_the_worker("urcu_workqueue_pause_worker");
        workqueue.state.want_pause();
    }

    /// After a fork, in the parent: returns when the worker has gone on.
    fn quiescence_urcu_workqueue_resume_worker(workqueue: &Workqueue) {
        workqueue.state.resume();
    }

    /// After a fork, in the child: gives it a worker; it has none in this process.
    fn quiescence_urcu_workqueue_create_worker(workqueue: &Workqueue) {
        workqueue.state.begin_anew();
        workqueue.start();
    }
}
