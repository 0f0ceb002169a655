//! The queues and stacks under loom: every interleaving of two or three threads. A node's payload
//! is one of loom's cells. So the model fails if a consumer sees a node before its content, or if a
//! node is taken out twice.

use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread;

use super::intrusive::{
    LockFreeStack, QueueNode, SentinelQueue, StackNode, WaitFreeQueue, WaitFreeStack,
};
use super::lock_free_queue::{self, LockFreeQueue, SharedNode};
use crate::domain::raw;
use crate::loom_tests::{beside, beside_two, bounded, spawn};

/// An object with a node in it, and a number that is written before it is put in and taken away
/// after.
#[repr(C)]
struct Object<N> {
    node: N,
    number: UnsafeCell<usize>,
}

/// What a number becomes when its object has been taken out.
const TAKEN: usize = usize::MAX;

/// The objects of a model, in memory of their own: structures keep pointers to them, and nothing
/// else does.
struct Objects<N> {
    all: Vec<NonNull<Object<N>>>,
    taken: AtomicUsize,
}

impl<N> Objects<N> {
    fn new(count: usize, node: impl Fn() -> N) -> Self {
        let object = || Object { node: node(), number: UnsafeCell::new(TAKEN) };
        let all = (0..count).map(|_| NonNull::from(Box::leak(Box::new(object())))).collect();
        Self { all, taken: AtomicUsize::new(0) }
    }

    /// Writes an object's number, and gives its node.
    fn filled(&self, number: usize) -> *mut N {
        let object = self.all[number].as_ptr();
        // SAFETY: it lives as long as the model.
        let place = unsafe { &(*object).number };
        // SAFETY: a write; that no thread is near is what is tested.
        place.with_mut(|place| unsafe { *place = number });
        object.cast()
    }

    /// Takes the number away from the object of a node.
    fn emptied(&self, node: NonNull<N>) -> usize {
        let object = node.as_ptr().cast::<Object<N>>();
        // SAFETY: it lives as long as the model.
        let place = unsafe { &(*object).number };
        // SAFETY: an exclusive access; that no thread is near is what is tested.
        let number = place.with_mut(|place| unsafe { place.replace(TAKEN) });
        assert_ne!(number, TAKEN, "taken out twice");
        self.taken.fetch_add(1, Relaxed);
        number
    }
}

impl<N> Drop for Objects<N> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return; // what loom looks at may be in there
        }
        for object in &self.all {
            // SAFETY: a box of `new`, which no structure is to hold any more.
            drop(unsafe { Box::from_raw(object.as_ptr()) });
        }
    }
}

/// A structure, and the objects that are put into it.
struct World<S, N> {
    structure: S,
    objects: Objects<N>,
}

impl<S, N> World<S, N> {
    fn new(structure: S, count: usize, node: impl Fn() -> N) -> Arc<Self> {
        Arc::new(Self { structure, objects: Objects::new(count, node) })
    }

    fn all_taken(&self) {
        assert_eq!(self.objects.taken.load(Relaxed), self.objects.all.len(), "nodes are lost");
    }

    /// Takes the numbers away from the objects of nodes.
    fn empty(&self, nodes: impl IntoIterator<Item = NonNull<N>>) -> Vec<usize> {
        nodes.into_iter().map(|node| self.objects.emptied(node)).collect()
    }
}

/// Beside a producer of two and a producer of one, each of which puts in by `put`.
fn beside_producers<S: 'static, N: 'static, R>(
    world: &Arc<World<S, N>>,
    put: fn(&S, *mut N),
    here: impl FnOnce(&World<S, N>) -> R,
) -> R {
    let put =
        move |world: &World<S, N>, number| put(&world.structure, world.objects.filled(number));
    let two = move |world: &_| (0..2).for_each(|number| put(world, number));
    beside_two(world, two, move |world| put(world, 2), here).2
}

/// Of those of the first producer what was put in first has come out first.
fn are_in_order(numbers: &[usize]) {
    let place = |number| numbers.iter().position(|&other| other == number);
    assert!(place(0) < place(1), "{numbers:?}");
}

type Queues = World<WaitFreeQueue, QueueNode>;

impl Queues {
    fn enqueue(&self, number: usize) -> bool {
        // SAFETY: an object that lives as long as the model, put in once.
        unsafe { self.structure.enqueue(self.objects.filled(number)) }
    }
}

/// A producer of two and a producer of one, and a consumer that takes one at a time.
#[test]
fn what_two_producers_enqueue_is_dequeued_in_their_order() {
    bounded(3, || {
        let world = &Queues::new(WaitFreeQueue::new(), 3, QueueNode::new);
        // SAFETY: this thread is the only consumer.
        let mut consumer = unsafe { world.structure.only_consumer() };
        let mut numbers = Vec::new();
        // SAFETY: objects that live as long as the model, put in once.
        let put = |queue: &WaitFreeQueue, node| _ = unsafe { queue.enqueue(node) };
        beside_producers(world, put, |world| {
            while numbers.len() < 2 {
                match consumer.dequeue() {
                    Some(dequeued) => numbers.push(world.objects.emptied(dequeued.node)),
                    None => thread::yield_now(),
                }
            }
        });
        let last = consumer.dequeue().expect("one is lost");
        assert!(last.last && consumer.dequeue().is_none() && world.structure.is_empty());
        numbers.push(world.objects.emptied(last.node));
        are_in_order(&numbers);
        world.all_taken();
    });
}

/// Of producers that come to a queue that empties, whichever thread is notified that it was empty
/// can wake the consumer.
#[test]
fn one_enqueue_finds_the_queue_empty_for_each_last_dequeue() {
    bounded(4, || {
        let world = &Queues::new(WaitFreeQueue::new(), 2, QueueNode::new);
        let puts = |world: &Queues| (0..2).filter(|&number| !world.enqueue(number)).count();
        let (found_empty, last) = beside(world, puts, |world| {
            let mut consumer = world.structure.consumer();
            let (mut taken, mut last) = (0, 0);
            while taken < 2 {
                let Some(dequeued) = consumer.dequeue() else {
                    thread::yield_now();
                    continue;
                };
                world.objects.emptied(dequeued.node);
                taken += 1;
                last += usize::from(dequeued.last);
            }
            last
        });
        assert_eq!(found_empty, last);
    });
}

/// Without waiting: what cannot be had is refused, and everything is where it was.
#[test]
fn what_is_refused_is_had_later() {
    bounded(3, || {
        let world = &Queues::new(WaitFreeQueue::new(), 3, QueueNode::new);
        let mut consumer = world.structure.consumer();
        // SAFETY: objects that live as long as the model, put in once.
        let put = |queue: &WaitFreeQueue, node| _ = unsafe { queue.enqueue(node) };
        beside_producers(world, put, |world| {
            for _ in 0..2 {
                if let Ok(Some(dequeued)) = consumer.try_dequeue() {
                    world.objects.emptied(dequeued.node);
                }
            }
            if let Ok(chain) = consumer.try_take_all() {
                world.empty(chain);
            }
        });
        while let Ok(Some(dequeued)) = consumer.try_dequeue() {
            world.objects.emptied(dequeued.node);
        }
        world.all_taken();
    });
}

/// Two who take all of a queue into which somebody puts: each node comes out once.
#[test]
fn two_take_all() {
    bounded(3, || {
        let world = &Queues::new(WaitFreeQueue::new(), 3, QueueNode::new);
        world.enqueue(0);
        let puts = |world: &Queues| _ = [1, 2].map(|number| world.enqueue(number));
        let takes_all = |world: &Queues| {
            // SAFETY: the others only put in, or take all as well.
            let chain = unsafe { world.structure.only_consumer() }.take_all();
            world.empty(chain)
        };
        let (.., taken) = beside_two(world, puts, takes_all, takes_all);
        assert!(taken.is_sorted());
        let rest = world.structure.consumer().take_all();
        world.empty(rest);
        world.all_taken();
    });
}

/// A chain goes into another queue while a producer of the first is perhaps not done, and another
/// one appends there.
#[test]
fn a_chain_moves_to_another_queue() {
    let queues = || (WaitFreeQueue::new(), WaitFreeQueue::new());
    bounded(3, move || {
        let world = &World::new(queues(), 3, QueueNode::new);
        let put = |world: &World<(WaitFreeQueue, WaitFreeQueue), QueueNode>, number, first| {
            let (from, to) = &world.structure;
            let node = world.objects.filled(number);
            // SAFETY: an object that lives as long as the model, put in once.
            unsafe { if first { from } else { to }.enqueue(node) }
        };
        put(world, 0, true);
        let before = move |world: &_| put(world, 1, true);
        let behind = move |world: &_| put(world, 2, false);
        let (from, to) = &world.structure;
        beside_two(world, before, behind, |_| to.append(from.consumer().take_all()));
        to.append(from.consumer().take_all());
        assert!(from.is_empty());
        let numbers = world.empty(to.consumer().take_all());
        are_in_order(&numbers);
        world.all_taken();
    });
}

/// The queue whose own node goes round.
#[test]
fn a_queue_with_a_sentinel() {
    struct Pinned(Box<SentinelQueue>);
    bounded(3, || {
        let mut memory = Box::new(std::mem::MaybeUninit::<SentinelQueue>::uninit());
        // SAFETY: the box's memory, which stays where it is.
        unsafe { SentinelQueue::write(memory.as_mut_ptr()) };
        // SAFETY: written above.
        let queue = unsafe { memory.assume_init() };
        let world = World::new(Pinned(queue), 3, QueueNode::new);
        let mut numbers = Vec::new();
        // SAFETY: objects that live as long as the model, put in once.
        let put = |queue: &Pinned, node| unsafe { queue.0.enqueue(node) };
        beside_producers(&world, put, |world| {
            while numbers.len() < 3 {
                // SAFETY: this thread is the only consumer.
                match unsafe { world.structure.0.dequeue() } {
                    Some(node) => numbers.push(world.objects.emptied(node)),
                    None => thread::yield_now(),
                }
            }
        });
        are_in_order(&numbers);
    });
}

/// Two producers, one that pops, and all the rest at the end.
#[test]
fn a_wait_free_stack() {
    bounded(3, || {
        let world = &World::new(WaitFreeStack::new(), 3, StackNode::new);
        // SAFETY: objects that live as long as the model, put on once.
        let put = |stack: &WaitFreeStack, node| _ = unsafe { stack.push(node) };
        beside_producers(world, put, |world| {
            // SAFETY: this thread alone takes nodes off.
            if let Some(popped) = unsafe { world.structure.pop() } {
                world.objects.emptied(popped.node);
            }
            world.empty(world.structure.pop_all());
        });
        // SAFETY: as above.
        while let Ok(Some(popped)) = unsafe { world.structure.try_pop() } {
            world.objects.emptied(popped.node);
        }
        assert!(world.structure.is_empty());
        world.all_taken();
    });
}

type Stack = World<LockFreeStack, StackNode>;

impl Stack {
    fn push(&self, number: usize) {
        // SAFETY: an object that lives as long as the model, and is not on the stack.
        unsafe { self.structure.push(self.objects.filled(number)) };
    }

    fn pop(&self) {
        // SAFETY: nothing is freed while the model lasts.
        self.empty(unsafe { self.structure.pop() });
    }
}

/// Two that pop at once, as in sections: nothing is freed nor put on again. And one that pushes.
#[test]
fn two_pop_of_a_lock_free_stack() {
    bounded(3, || {
        let world = &World::new(LockFreeStack::new(), 3, StackNode::new);
        (0..2).for_each(|number| world.push(number));
        beside_two(world, |world| world.push(2), |world| world.pop(), |world| world.pop());
        world.empty(world.structure.pop_all());
        world.all_taken();
    });
}

/// What a grace period, or a lock, is for: a node that comes back at once is taken for the one that
/// was there before, and with it what was below it then.
#[test]
#[should_panic]
fn a_node_that_is_put_on_again_at_once_is_mistaken() {
    bounded(3, || {
        let world = &World::new(LockFreeStack::new(), 2, StackNode::new);
        (0..2).for_each(|number| world.push(number));
        let pops_and_pushes = |world: &Stack| {
            // SAFETY: nothing is freed while the model lasts.
            let popped = [unsafe { world.structure.pop() }, unsafe { world.structure.pop() }];
            let numbers = popped.map(|node| node.map(|node| world.objects.emptied(node)));
            if let [Some(again), _] = numbers {
                world.push(again); // the other thread may be about to take it off
            }
        };
        beside(world, pops_and_pushes, |world| world.pop());
        world.empty(world.structure.pop_all());
    });
}

/// Dummies that wait for the end of the model. Loom runs one model's threads one at a time, on one
/// of the system's.
static PASSED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// A grace period that ends with the model.
unsafe extern "C" fn at_the_end(head: *mut raw::Head, function: raw::Function) {
    let mut passed = PASSED.lock().unwrap();
    // A panic here ends the process.
    assert!(!passed.contains(&head.expose_provenance()), "a dummy is freed twice");
    passed.push(head.expose_provenance());
    passed.push(function as usize);
}

fn free_passed() {
    let passed = std::mem::take(&mut *PASSED.lock().unwrap());
    for pair in passed.chunks(2) {
        let head = std::ptr::with_exposed_provenance_mut::<raw::Head>(pair[0]);
        // SAFETY: from `at_the_end`.
        let function = unsafe { std::mem::transmute::<usize, raw::Function>(pair[1]) };
        // SAFETY: every thread of the model has ended.
        unsafe { function(head) };
    }
}

/// Two that take, one that puts: the queue becomes empty and full again, and every node comes out
/// once.
#[test]
fn a_lock_free_queue() {
    bounded(2, || {
        // SAFETY: what it frees is freed at the end of the model.
        let queue = unsafe { LockFreeQueue::with(at_the_end) };
        let world = World::new(queue, 3, SharedNode::new);
        let put = |world: &World<LockFreeQueue, SharedNode>, number| {
            // SAFETY: an object that lives as long as the model, put in once.
            unsafe { world.structure.enqueue(world.objects.filled(number)) };
        };
        let take = |world: &World<LockFreeQueue, SharedNode>| {
            // SAFETY: nothing is freed while the model lasts.
            let node = unsafe { world.structure.dequeue() };
            node.map(|node| world.objects.emptied(node))
        };
        put(&world, 0);
        let puts = move |world: &_| (1..3).for_each(|number| put(world, number));
        beside_two(&world, puts, take, take);
        // SAFETY: no other thread uses the queue; it is destroyed only when it is empty, and then
        // not dropped.
        if world.objects.taken.load(Relaxed) < 3 {
            // SAFETY: it is not empty, and so nothing is done.
            assert!(unsafe { world.structure.destroy() }.is_err());
        }
        let mut before = None;
        while let Some(number) = take(&world) {
            assert!(before < Some(number), "{number} after {before:?}");
            before = Some(number);
        }
        world.all_taken();
        free_passed();
    });
}

/// Sections and grace periods of a model, as short as they are allowed to be: what is retired is at
/// its end when the last of those sections that were there has ended, and sections that have begun
/// meanwhile are not waited for.
#[derive(Default)]
struct Sections {
    begun: usize,
    open: Vec<usize>,
    /// Addresses of nodes, each with the sections that are waited for.
    retired: Vec<(usize, Vec<usize>)>,
    /// Dummies, whose memory is freed with the model.
    dummies: Vec<(usize, raw::Function)>,
}

loom::lazy_static! {
    static ref SECTIONS: loom::sync::Mutex<Sections> = loom::sync::Mutex::new(Sections::default());
}

impl Sections {
    fn enter() -> usize {
        let mut sections = SECTIONS.lock().unwrap();
        sections.begun += 1;
        let section = sections.begun;
        sections.open.push(section);
        section
    }

    fn leave(section: usize) {
        let mut sections = SECTIONS.lock().unwrap();
        sections.open.retain(|&open| open != section);
        for (_, waited_for) in &mut sections.retired {
            waited_for.retain(|&open| open != section);
        }
        sections.end();
    }

    fn retire(&mut self, node: *mut SharedNode) {
        let waited_for = self.open.clone();
        self.retired.push((node.expose_provenance(), waited_for));
        self.end();
    }

    /// Ends those that no thread is waited for any more.
    fn end(&mut self) {
        self.retired.retain(|(node, waited_for)| {
            if waited_for.is_empty() {
                let node: *mut SharedNode = std::ptr::with_exposed_provenance_mut(*node);
                // Has loom look whether anybody may still come by it.
                // SAFETY: its memory is freed with the model. A shared reference to another part
                // of it there may be none.
                unsafe { &mut (*node).next }.with_mut(|_| ());
            }
            !waited_for.is_empty()
        });
    }
}

/// A grace period of those sections.
unsafe extern "C" fn after_sections(head: *mut raw::Head, function: raw::Function) {
    let mut sections = SECTIONS.lock().unwrap();
    sections.dummies.push((head.expose_provenance(), function));
    sections.retire(lock_free_queue::dummy_of(head));
}

/// A node that has been taken out is not found any more by sections that its grace period does not
/// wait for: who has put one in behind it may not have moved the tail yet.
#[test]
fn what_left_a_lock_free_queue_is_not_found_by_later_sections() {
    bounded(4, || {
        // SAFETY: sections and grace periods of the model.
        let queue = unsafe { LockFreeQueue::with(after_sections) };
        let world = World::new(queue, 4, SharedNode::new);
        let put = |world: &World<LockFreeQueue, SharedNode>, number| {
            let section = Sections::enter();
            // SAFETY: in a section; an object that lives as long as the model, put in once.
            unsafe { world.structure.enqueue(world.objects.filled(number)) };
            Sections::leave(section);
        };
        let take = |world: &World<LockFreeQueue, SharedNode>| {
            let section = Sections::enter();
            // SAFETY: in a section.
            let node = unsafe { world.structure.dequeue() };
            Sections::leave(section);
            if let Some(node) = node {
                world.objects.emptied(node);
                SECTIONS.lock().unwrap().retire(node.as_ptr());
            }
            node.is_some()
        };
        put(&world, 0);
        put(&world, 1);
        assert!(take(&world), "and the dummy before it");
        let slow = spawn(&world, move |world| put(world, 2));
        assert!(take(&world));
        put(&world, 3);
        slow.join().unwrap();
        assert!(take(&world) && take(&world) && !take(&world));
        world.all_taken();
        let dummies = std::mem::take(&mut SECTIONS.lock().unwrap().dummies);
        for (head, function) in dummies {
            // SAFETY: of `after_sections`; every thread of the model has ended.
            unsafe { function(std::ptr::with_exposed_provenance_mut(head)) };
        }
    });
}
