//! The queues and stacks of nodes that callers bring along, with real threads: everything comes out
//! once, whole, and in order; what an insertion that is half done does to consumers.

use crate::common::*;
use std::collections::VecDeque;
use std::mem::MaybeUninit;

use quiescence::intrusive::{
    Chain, Ends, LockFreeQueue, LockFreeStack, Patience, QueueHead, QueueNode, QueueTail,
    SentinelQueue, SharedNode, StackNode, Stacked, WaitFreeQueue, WaitFreeStack, WouldBlock,
};

const PRODUCERS: usize = 3;
const EACH: usize = if cfg!(miri) { 40 } else { 5_000 };

/// An object with a node in it. Its fields are plain: that they are seen whole is what is tested.
#[repr(C)]
struct Object<N> {
    node: N,
    producer: usize,
    number: usize,
    /// Not of the producer and the number, once the object has been taken out.
    check: usize,
}

fn check_of(producer: usize, number: usize) -> usize {
    (producer << 32 | number) ^ 0x5eed
}

impl<N: Default> Object<N> {
    fn make(producer: usize, number: usize) -> *mut N {
        let check = check_of(producer, number);
        Box::into_raw(Box::new(Self { node: N::default(), producer, number, check })).cast()
    }

    /// Looks at the object of a node that has come out, and marks it as such.
    fn look(node: NonNull<N>) -> (usize, usize) {
        let object = node.as_ptr().cast::<Self>();
        // Field by field: the node may still be looked at, in sections.
        // SAFETY: of `make`, and all but the node is this thread's since it has come out.
        let producer = unsafe { (*object).producer };
        // SAFETY: as above.
        let number = unsafe { (*object).number };
        // SAFETY: as above.
        let check = unsafe { &mut (*object).check };
        assert_eq!(*check, check_of(producer, number), "not whole, or taken out twice");
        *check = 0;
        (producer, number)
    }

    /// Frees the object of a node.
    fn free(node: NonNull<N>) {
        // SAFETY: of `make`, and no other thread's by now.
        drop(unsafe { Box::from_raw(node.as_ptr().cast::<Self>()) });
    }

    fn take(node: NonNull<N>) -> (usize, usize) {
        let seen = Self::look(node);
        Self::free(node);
        seen
    }
}

/// What has come out so far of what each producer put in.
#[derive(Default)]
struct Order([usize; PRODUCERS]);

impl Order {
    /// The next of its producer, by one consumer.
    fn next(&mut self, (producer, number): (usize, usize)) {
        assert_eq!(number, self.0[producer], "of producer {producer}");
        self.0[producer] += 1;
    }

    fn is_all(&self) -> bool {
        self.0 == [EACH; PRODUCERS]
    }
}

/// Producers that call `put(producer, number)` with each number in order, beside `consume`.
fn beside_producers(put: impl Fn(usize, usize) + Sync, consume: impl FnOnce()) {
    let start = Barrier::new(PRODUCERS + 1);
    thread::scope(|scope| {
        scope.spawn(|| {
            threads(PRODUCERS, |producer| {
                start.wait();
                (0..EACH).for_each(|number| put(producer, number));
            })
        });
        start.wait();
        consume();
    });
}

/// All that the producers put, by `put`, is taken by two consumers that go on until everything has
/// come: each takes by `take`, unless there is nothing. Of one producer a consumer sees a part, in
/// order.
fn goes_through(
    put: impl Fn(usize, usize) + Sync,
    take: impl Fn() -> Option<(usize, usize)> + Sync,
) {
    let taken = AtomicUsize::new(0);
    let consume = |_| {
        let mut latest = [None; PRODUCERS];
        while taken.load(Relaxed) < PRODUCERS * EACH {
            let Some((producer, number)) = take() else {
                thread::yield_now();
                continue;
            };
            assert!(latest[producer] < Some(number));
            latest[producer] = Some(number);
            taken.fetch_add(1, Relaxed);
        }
    };
    beside_producers(put, || _ = threads(2, consume));
    assert_eq!(taken.load(Relaxed), PRODUCERS * EACH);
}

/// Also of consumers that keep each other away.
#[test]
fn what_each_producer_enqueues_is_dequeued_once_and_in_order() {
    let queue = WaitFreeQueue::new();
    let (found_empty, last) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let put = |producer, number| {
        // SAFETY: an object that is given away.
        let was_there = unsafe { queue.enqueue(Object::<QueueNode>::make(producer, number)) };
        found_empty.fetch_add(usize::from(!was_there), Relaxed);
    };
    let take = || {
        let dequeued = queue.consumer().dequeue()?;
        last.fetch_add(usize::from(dequeued.last), Relaxed);
        Some(Object::take(dequeued.node))
    };
    goes_through(put, take);
    assert!(queue.is_empty());
    let counts = (found_empty.into_inner(), last.into_inner());
    assert_eq!(counts.0, counts.1, "as often as it was emptied, it was found empty");
}

#[test]
fn chains_and_single_nodes_come_out_in_one_order() {
    let queue = WaitFreeQueue::new();
    let put = |producer, number| {
        // SAFETY: an object that is given away.
        _ = unsafe { queue.enqueue(Object::<QueueNode>::make(producer, number)) }
    };
    beside_producers(put, || {
        let mut order = Order::default();
        let mut turns = 0_usize;
        while !order.is_all() {
            let mut consumer = queue.consumer();
            turns += 1;
            match turns % 4 {
                0 => consumer.take_all().for_each(|node| order.next(Object::take(node))),
                1 => {
                    let chain: Option<Chain> = consumer.try_take_all().ok();
                    chain.into_iter().flatten().for_each(|node| order.next(Object::take(node)));
                }
                2 => {
                    if let Ok(Some(dequeued)) = consumer.try_dequeue() {
                        order.next(Object::take(dequeued.node));
                    }
                }
                _ => {
                    // What is seen in the queue is what comes out next.
                    let seen: Vec<NonNull<QueueNode>> = consumer.iter().take(5).collect();
                    for node in seen {
                        let dequeued = consumer.dequeue().map(|dequeued| dequeued.node);
                        assert_eq!(dequeued, Some(node));
                        order.next(Object::take(node));
                    }
                }
            }
            drop(consumer);
            thread::yield_now();
        }
    });
}

/// A queue may move while no thread uses it, with what is in it.
#[test]
fn a_queue_moves() {
    let queue = WaitFreeQueue::new();
    // SAFETY: an object that is given away.
    unsafe { queue.enqueue(Object::<QueueNode>::make(0, 0)) };
    let moved = Box::new(queue);
    // SAFETY: as above.
    assert!(unsafe { moved.enqueue(Object::<QueueNode>::make(0, 1)) });
    let mut order = Order::default();
    moved.consumer().take_all().for_each(|node| order.next(Object::take(node)));
    assert_eq!(order.0[0], 2);
    let moved = *moved;
    // SAFETY: as above.
    assert!(!unsafe { moved.enqueue(Object::<QueueNode>::make(0, 2)) });
    moved.consumer().take_all().for_each(|node| order.next(Object::take(node)));
    assert_eq!(order.0[0], 3);
}

/// A word of a structure that lies there as C has it.
fn word<T, N>(structure: &T) -> &AtomicPtr<N> {
    // SAFETY: the first word, which is an atomic pointer.
    unsafe { &*std::ptr::from_ref(structure).cast::<AtomicPtr<N>>() }
}

/// A producer that was stopped between its exchange and its store, and then continues.
#[test]
fn a_half_done_enqueue_holds_up_consumers_and_nobody_else() {
    let (mut head, mut tail) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: two of this thread's.
    unsafe { Ends::write(head.as_mut_ptr(), tail.as_mut_ptr()) };
    // SAFETY: of one queue, made above, which stays here.
    let head: &QueueHead = unsafe { head.assume_init_ref() };
    // SAFETY: as above.
    let tail: &QueueTail = unsafe { tail.assume_init_ref() };
    // SAFETY: as above.
    let ends = unsafe { Ends::new(head, tail) };
    // SAFETY: this thread is the only consumer.
    let dequeue = |patience| unsafe { ends.dequeue(patience) };
    // SAFETY: as above.
    let first_node = || unsafe { ends.first(Patience::Refuse) };
    // SAFETY: as above.
    let take_all = || unsafe { ends.take_all(Patience::Refuse) };
    assert_eq!(dequeue(Patience::Refuse), Ok(None));

    // The first half, by hand.
    let first = Object::<QueueNode>::make(0, 0);
    let before = word::<_, QueueNode>(tail).swap(first, Release);
    assert!(!ends.is_empty());
    assert_eq!(dequeue(Patience::Refuse), Err(WouldBlock));
    assert_eq!(first_node(), Err(WouldBlock));
    assert!(take_all().is_err());
    // Others are not held up.
    // SAFETY: an object that is given away.
    assert!(unsafe { ends.enqueue(Object::<QueueNode>::make(0, 1)) });
    assert_eq!(dequeue(Patience::Refuse), Err(WouldBlock));

    // SAFETY: the node that the tail named: the head.
    let link = unsafe { &*before.cast::<AtomicPtr<QueueNode>>() };
    thread::scope(|scope| {
        let last_step = AtomicPtr::new(first);
        scope.spawn(move || link.store(last_step.into_inner(), Release));
        let waited = dequeue(Patience::Wait).ok().flatten().expect("waited for");
        assert_eq!((Object::take(waited.node), waited.last), ((0, 0), false));
    });

    // And behind another node: that one cannot be had, and the chain waits inside.
    let third = Object::<QueueNode>::make(0, 2);
    let before = word::<_, QueueNode>(tail).swap(third, Release);
    let second = first_node().ok().flatten().expect("it is there");
    // SAFETY: it is in the queue.
    assert_eq!(unsafe { ends.next(second, Patience::Refuse) }, Err(WouldBlock));
    assert_eq!(dequeue(Patience::Refuse), Err(WouldBlock));
    assert_eq!(first_node(), Ok(Some(second)), "as it was");
    let mut chain = take_all().expect("its first node is there");
    assert!(ends.is_empty());
    // SAFETY: the node that the tail named.
    let link = unsafe { &*before.cast::<AtomicPtr<QueueNode>>() };
    thread::scope(|scope| {
        let last_step = AtomicPtr::new(third);
        scope.spawn(move || link.store(last_step.into_inner(), Release));
        assert_eq!(chain.next().map(Object::take), Some((0, 1)));
        assert_eq!(chain.next().map(Object::take), Some((0, 2)));
        assert_eq!(chain.next(), None);
    });
}

#[test]
fn a_half_done_push_holds_up_consumers_and_nobody_else() {
    let stack = WaitFreeStack::new();
    // SAFETY: an object that is given away.
    assert!(!unsafe { stack.push(Object::<StackNode>::make(0, 0)) });
    let second = Object::<StackNode>::make(0, 1);
    let below = word::<_, StackNode>(&stack).swap(second, Release);
    // SAFETY: this thread alone takes nodes off.
    assert_eq!(unsafe { stack.try_pop() }, Err(WouldBlock));
    // SAFETY: an object that is given away.
    assert!(unsafe { stack.push(Object::<StackNode>::make(0, 2)) });
    // SAFETY: as above.
    let popped = unsafe { stack.try_pop() }.ok().flatten().expect("it is whole");
    assert_eq!((Object::take(popped.node), popped.last), ((0, 2), false));
    // SAFETY: as above.
    assert_eq!(unsafe { stack.try_pop() }, Err(WouldBlock));

    let mut stacked = stack.pop_all();
    let top = stacked.first().expect("it is the topmost");
    assert!(stack.is_empty());
    // SAFETY: it has come off.
    assert_eq!(unsafe { Stacked::below(top, Patience::Refuse) }, Err(WouldBlock));
    // SAFETY: its link.
    let link = unsafe { &*second.cast::<AtomicPtr<StackNode>>() };
    thread::scope(|scope| {
        let last_step = AtomicPtr::new(below);
        scope.spawn(move || link.store(last_step.into_inner(), Release));
        assert_eq!(stacked.next().map(Object::take), Some((0, 1)));
        assert_eq!(stacked.next().map(Object::take), Some((0, 0)));
        assert_eq!(stacked.next(), None);
    });
}

#[test]
fn the_queue_with_a_sentinel_keeps_the_order_of_each_producer() {
    // Not by the box from here on: the queue has pointers to itself.
    let memory = Box::into_raw(Box::new(MaybeUninit::<SentinelQueue>::uninit()));
    // SAFETY: the box's memory, which stays where it is.
    unsafe { SentinelQueue::write(memory.cast()) };
    // SAFETY: written above.
    let queue = unsafe { &*memory.cast::<SentinelQueue>() };
    let put = |producer, number| {
        // SAFETY: an object that is given away.
        unsafe { queue.enqueue(Object::<QueueNode>::make(producer, number)) };
    };
    let turns = Mutex::new(());
    goes_through(put, || {
        let _turn = turns.lock().unwrap();
        // SAFETY: who takes nodes out has the lock.
        unsafe { queue.dequeue() }.map(Object::take)
    });
    // SAFETY: no other thread uses it any more.
    assert_eq!(unsafe { queue.dequeue() }, None);
    // SAFETY: from a box.
    drop(unsafe { Box::from_raw(memory) });
}

/// Has `f` called with a node, which no other thread has, a grace period later.
fn later<N: 'static>(node: NonNull<N>, f: fn(NonNull<N>)) {
    struct Passed<N>(NonNull<N>);
    // SAFETY: no other thread has it.
    unsafe impl<N> Send for Passed<N> {}

    let passed = Passed(node);
    let call = move || {
        let Passed(node) = { passed }; // moves all of it: the pointer alone is not `Send`
        f(node);
    };
    quiescence::call(call).expect("not in a section");
}

/// Nodes go round: the thread that pops one, in a section, puts it on again a grace period later.
/// Without the grace period, a pop that was interrupted would take the node's second stay for its
/// first, and lose what lies below.
#[test]
fn nodes_of_a_lock_free_stack_go_round_a_grace_period_later() {
    const NODES: usize = 40;
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 2_000 };
    static STACK: LockFreeStack = LockFreeStack::new();
    static ON_ITS_WAY: AtomicUsize = AtomicUsize::new(0);
    static OFF: [AtomicBool; NODES] = [const { AtomicBool::new(false) }; NODES];

    fn number_of(node: NonNull<StackNode>) -> usize {
        // SAFETY: of `make`; no thread writes the number, and the others look at the link at most.
        unsafe { (*node.as_ptr().cast::<Object<StackNode>>()).number }
    }

    fn put(node: NonNull<StackNode>) {
        OFF[number_of(node)].store(false, Release);
        // SAFETY: an object that is given away.
        unsafe { STACK.push(node.as_ptr()) };
        ON_ITS_WAY.fetch_sub(1, Release);
    }

    for number in 0..NODES {
        // SAFETY: an object that is given away.
        unsafe { STACK.push(Object::<StackNode>::make(0, number)) };
    }
    threads(3, |_| {
        for _ in 0..ROUNDS {
            let section = quiescence::read();
            // SAFETY: in a section; a node comes back a grace period later.
            let popped = unsafe { STACK.pop() };
            drop(section);
            let Some(node) = popped else {
                thread::yield_now();
                continue;
            };
            let number = number_of(node);
            assert!(!OFF[number].swap(true, Acquire), "{number} has come off twice");
            ON_ITS_WAY.fetch_add(1, Relaxed);
            later(node, put);
        }
    });
    quiescence::barrier();
    assert_eq!(ON_ITS_WAY.load(Acquire), 0);
    let mut numbers: Vec<usize> = STACK.pop_all().map(|node| Object::take(node).1).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..NODES), "each is there once");
}

/// Two that take, in sections, and free a grace period later; the queue becomes empty again and
/// again.
#[test]
fn a_lock_free_queue_keeps_the_order_of_each_producer() {
    let queue = LockFreeQueue::new();
    let put = |producer, number| {
        let _section = quiescence::read();
        // SAFETY: in a section; an object that is given away.
        unsafe { queue.enqueue(Object::<SharedNode>::make(producer, number)) };
    };
    let take = || {
        let section = quiescence::read();
        // SAFETY: in a section; it is freed a grace period later.
        let node = unsafe { queue.dequeue() };
        drop(section);
        let node = node?;
        let seen = Object::look(node);
        later(node, Object::free);
        Some(seen)
    };
    goes_through(put, take);
    quiescence::barrier();
    // SAFETY: in no use any more, and not dropped after it has succeeded.
    assert_eq!(unsafe { queue.destroy() }, Ok(()));
    std::mem::forget(queue);
}

/// A producer that was stopped after it has linked its node, and has not moved the tail: a consumer
/// takes the node before it does. A section that begins afterwards would find that node there,
/// which is freed without waiting for the section.
#[test]
fn what_a_lock_free_queue_gives_out_is_not_found_at_its_tail() {
    let queue = LockFreeQueue::new();
    let section = quiescence::read();
    for number in 0..2 {
        // SAFETY: in a section; an object that is given away.
        unsafe { queue.enqueue(Object::<SharedNode>::make(0, number)) };
    }
    // SAFETY: in a section; freed after the next grace period, as are those below.
    let dequeue = || unsafe { queue.dequeue() };
    let first = dequeue().expect("it is there");

    // The first half of an enqueue, by hand. The tail is the second word.
    // SAFETY: a structure of two atomic pointers and a function.
    let tail = unsafe { &(*std::ptr::from_ref(&queue).cast::<[AtomicPtr<SharedNode>; 2]>())[1] };
    let last = tail.load(Acquire);
    // SAFETY: the node that the tail names.
    let link = unsafe { &*last.cast::<AtomicPtr<SharedNode>>() };
    let third = Object::<SharedNode>::make(0, 2);
    link.store(third, Release);

    let second = dequeue().expect("it is there");
    assert_eq!(second.as_ptr(), last, "the one that the tail names");
    assert_eq!(tail.load(Acquire), third);
    // The other half: somebody else has done it.
    assert!(tail.compare_exchange(last, third, Release, Relaxed).is_err());
    let third = dequeue().expect("it is there");
    assert_eq!(dequeue(), None);
    drop(section);
    quiescence::synchronize();
    let numbers = [first, second, third].map(|node| Object::take(node).1);
    assert_eq!(numbers, [0, 1, 2]);
}

#[test]
fn a_lock_free_queue_that_is_not_empty_is_not_destroyed() {
    let queue = LockFreeQueue::new();
    let section = quiescence::read();
    // SAFETY: in a section; an object that is given away.
    unsafe { queue.enqueue(Object::<SharedNode>::make(0, 0)) };
    // SAFETY: in no other use; it does not succeed.
    assert!(unsafe { queue.destroy() }.is_err());
    // SAFETY: in a section; freed after the next grace period.
    let node = unsafe { queue.dequeue() }.expect("it is there");
    // SAFETY: in a section.
    assert_eq!(unsafe { queue.dequeue() }, None);
    drop(section);
    quiescence::synchronize();
    assert_eq!(Object::take(node), (0, 0));
}

/// Alone, each structure does what a list does, whatever is asked of it in whichever order.
#[test]
fn alone_they_are_lists() {
    let queue = WaitFreeQueue::new();
    let (stack, lock_free) = (WaitFreeStack::new(), LockFreeStack::new());
    let (mut model, mut below) = (VecDeque::new(), Vec::new());
    let mut random = Random(0x2545_f491);
    for number in 0..if cfg!(miri) { 300 } else { 20_000 } {
        match random.below(16) {
            0..7 => {
                // SAFETY: objects that are given away.
                let was_there = unsafe { queue.enqueue(Object::<QueueNode>::make(0, number)) };
                assert_eq!(was_there, !model.is_empty());
                // SAFETY: as above.
                let was_there = unsafe { stack.push(Object::<StackNode>::make(0, number)) };
                assert_eq!(was_there, !below.is_empty());
                // SAFETY: as above.
                let was_there = unsafe { lock_free.push(Object::<StackNode>::make(0, number)) };
                assert_eq!(was_there, !below.is_empty());
                model.push_back(number);
                below.push(number);
            }
            7..15 => {
                let dequeued = queue.consumer().dequeue();
                assert_eq!(dequeued.is_some_and(|dequeued| dequeued.last), model.len() == 1);
                let taken = dequeued.map(|dequeued| Object::take(dequeued.node).1);
                assert_eq!(taken, model.pop_front());
                // SAFETY: this thread alone takes nodes off.
                let popped = unsafe { stack.pop() };
                assert_eq!(popped.is_some_and(|popped| popped.last), below.len() == 1);
                let expected = below.pop();
                assert_eq!(popped.map(|popped| Object::take(popped.node).1), expected);
                // SAFETY: as above.
                let popped = unsafe { lock_free.pop() };
                assert_eq!(popped.map(|node| Object::take(node).1), expected);
            }
            _ => {
                let consumer = queue.consumer();
                assert_eq!(consumer.iter().count(), model.len());
                drop(consumer);
                let all = queue.consumer().take_all().map(|node| Object::take(node).1);
                assert!(all.eq(model.drain(..)));
                let expected: Vec<usize> = below.drain(..).rev().collect();
                let all = stack.pop_all().map(|node| Object::take(node).1);
                assert!(all.eq(expected.iter().copied()));
                let all = lock_free.pop_all().map(|node| Object::take(node).1);
                assert!(all.eq(expected));
            }
        }
        assert_eq!(queue.is_empty(), model.is_empty());
        assert_eq!(stack.is_empty() && lock_free.is_empty(), below.is_empty());
    }
    let rest: Vec<NonNull<QueueNode>> = queue.consumer().take_all().collect();
    rest.into_iter().for_each(Object::free);
    stack.pop_all().chain(lock_free.pop_all()).for_each(Object::free);
}
