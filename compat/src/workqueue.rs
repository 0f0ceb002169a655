//! The work queue: a worker thread that runs work items in order. liburcu's hash table resizes on
//! one. Its functions are exported, though no public header declares them.
//!
//! A thread that queues an item exchanges the tail of a [`WaitFreeQueue`], and checks whether the
//! worker sleeps. The worker takes all items at once, and sleeps on [`State`] when there are none;
//! it never polls. The flag `RT` asks liburcu not to wake the worker, which then polls. Here the
//! worker is woken all the same, by one system call that does not block.
//!
//! A worker that is paused, before a fork, is between two batches and holds no items. So the child
//! loses none when it creates a worker of its own.
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

/// `struct urcu_work`: a work item, embedded in a structure of its user's.
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
    /// Before each batch: the hook may wait for a grace period.
    GracePeriod,
    Begin,
    End,
    /// Before and after the worker waits for items, even if some are there already: a QSBR reader
    /// goes offline in between, or announces a quiescent state.
    BeforeWait,
    AfterWait,
    BeforePause,
    AfterPause,
}

/// `struct urcu_workqueue`, which C knows by its address.
struct Workqueue {
    queue: WaitFreeQueue,
    state: State,
    /// The CPU on which the worker runs; any if it is negative.
    cpu: c_int,
    /// The creator's argument for the hooks.
    private: *mut c_void,
    /// One for each [`Step`].
    hooks: [Hook; 7],
    worker: Mutex<Option<Worker>>,
}

/// A thread, and its process: a child process has the thread's id, but not the thread.
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

// SAFETY: any thread may queue items, and `private` is only passed to the hooks.
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

    /// Aborts the process if the calling thread is the worker, which would wait for itself.
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

    /// The worker's loop. Items that were queued before the stop are still run.
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

    /// Runs all queued items. Returns whether there were any.
    fn run_batch(&self) -> bool {
        // SAFETY: the worker is the only consumer.
        let batch = unsafe { self.queue.only_consumer() }.take_all();
        if batch.is_empty() {
            return false;
        }
        self.call(Step::GracePeriod);
        for node in batch {
            let work = node.as_ptr().cast::<Work>();
            // SAFETY: the node is the first field of an item, and its user leaves the item alone
            // until it has run.
            let function = unsafe { (*work).function };
            // SAFETY: by the contract of `urcu_workqueue_queue_work`.
            unsafe { function(work) };
        }
        true
    }

    /// Queues an item.
    ///
    /// # Safety
    /// `work` is writable, and the caller leaves it alone until the worker calls `function` with
    /// it.
    unsafe fn add(&self, work: *mut Work, function: unsafe extern "C" fn(*mut Work)) {
        // SAFETY: by this function's contract.
        unsafe { work.write(Work { node: QueueNode::new(), function }) };
        // SAFETY: as above; the node comes first.
        unsafe { self.queue.enqueue(work.cast()) };
        self.state.wake_sleeper();
    }

    /// Stops the worker when all queued items have run, and joins it.
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

    /// Runs all queued items, and ends the worker. Null does nothing. The queue is from `create`,
    /// and no thread uses it any more.
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

    /// `work` is valid until it has run, and is not queued already.
    fn quiescence_urcu_workqueue_queue_work(
        workqueue: &Workqueue,
        work: *mut Work,
        function: unsafe extern "C" fn(*mut Work)
    ) {
        workqueue.add(work, function);
    }

    fn quiescence_urcu_workqueue_create_completion() -> *const Completion { Completion::create() }

    /// Releases the caller's reference to a completion, once; queued ones have their own.
    fn quiescence_urcu_workqueue_destroy_completion(completion: *const Completion) {
        Completion::release(completion);
    }

    /// Completes `completion` when all items that were queued before have run.
    fn quiescence_urcu_workqueue_queue_completion(
        workqueue: &Workqueue,
        completion: *const Completion
    ) {
        Completion::queue(completion, workqueue);
    }

    /// Waits until all items before the completion, in each queue that it is in, have run.
    fn quiescence_urcu_workqueue_wait_completion(completion: &Completion) { completion.wait() }

    /// Waits until all items that were queued before have run.
    fn quiescence_urcu_workqueue_flush_queued_work(workqueue: &Workqueue) {
        workqueue.not_on_the_worker("urcu_workqueue_flush_queued_work");
        let completion = Completion::create();
        // SAFETY: made above; its reference is released once, at the end.
        Completion::queue(completion, workqueue);
        (*completion).wait();
        Completion::release(completion);
    }

    /// Before a fork: pauses the worker, and returns when it has paused. It was not paused before.
    fn quiescence_urcu_workqueue_pause_worker(workqueue: &Workqueue) {
        workqueue.not_on_the_worker("urcu_workqueue_pause_worker");
        workqueue.state.want_pause();
    }

    /// After a fork, in the parent: returns when the worker has resumed.
    fn quiescence_urcu_workqueue_resume_worker(workqueue: &Workqueue) {
        workqueue.state.resume();
    }

    /// After a fork, in the child: creates a worker; the queue has none in this process.
    fn quiescence_urcu_workqueue_create_worker(workqueue: &Workqueue) {
        workqueue.state.begin_anew();
        workqueue.start();
    }
}
