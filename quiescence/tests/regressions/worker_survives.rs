//! Panics of user code on the worker thread, wherever that code runs.

use crate::common::user_types::{BOMB, Bomb};
use crate::common::*;

use quiescence::{Retire, report::StallReport};

/// Wakers whose drop panics, dropped with their futures, on the worker.
fn drop_of_a_waker() {
    #[expect(dead_code, reason = "they are dropped")]
    struct Silent(Bomb, mpsc::Sender<()>);
    impl Wake for Silent {
        fn wake(self: Arc<Self>) {
            std::mem::forget(self);
        }
        fn wake_by_ref(self: &Arc<Self>) {}
    }
    let srcu = Srcu::new();
    let guard = srcu.read();
    let inside = srcu.domain();
    let (sender, wakers_dropped) = mpsc::channel();
    Domain::new()
        .call(move || {
            let polled = || {
                let mut future = Box::pin(inside.synchronize_async());
                let waker = Waker::from(Arc::new(Silent(BOMB, sender.clone())));
                let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
                assert_eq!(polled, Poll::Pending);
                future
            };
            drop([polled(), polled(), polled()]);
        })
        .unwrap();
    wakers_dropped.recv().unwrap_err();
    drop(guard);
}

/// A waker that panics when it is called, with what panics when it is dropped.
fn call_of_a_waker() {
    let worker = worker();
    let srcu = Srcu::new();
    let (sender, woken) = mpsc::channel();
    let waker = waker_of(move || {
        sender.send(thread::current().id()).unwrap();
        panic_any(BOMB);
    });
    let mut context = Context::from_waker(&waker);
    let guard = srcu.read();
    let mut futures: Vec<_> = (0..3).map(|_| Box::pin(srcu.synchronize_async())).collect();
    for future in &mut futures {
        assert_eq!(future.as_mut().poll(&mut context), Poll::Pending);
    }
    drop(guard);
    for _ in &futures {
        assert_eq!(woken.recv(), Ok(worker), "all of them");
    }
    for future in &mut futures {
        assert!(future.as_mut().poll(&mut no_context()).is_ready());
    }
}

/// Callbacks, and what they own.
fn callbacks() {
    let domain = Domain::new();
    domain.call(|| panic_any(BOMB)).unwrap();
    let owned = BOMB;
    domain.call(move || drop(owned)).unwrap();
    let (large, owned) = ([0_u64; 16], BOMB);
    domain.call(move || _ = (large, owned)).unwrap();
    let (sender, called) = mpsc::channel();
    domain.call_hurry(move || sender.send(()).unwrap()).unwrap();
    called.recv().unwrap();
    until(|| domain.statistics().callbacks_run >= 4);
    assert_eq!(domain.statistics().callbacks_panicked, 3);
}

/// What says how large it is and panics when it is asked again.
struct Asked(AtomicU32);

impl Retire for Asked {
    fn bytes(&self) -> usize {
        if self.0.fetch_add(1, SeqCst) != 0 {
            panic_any(BOMB);
        }
        100
    }
}

/// Objects, retired by a thread that ends: the worker drops them.
fn objects() {
    let domain = Domain::new();
    elsewhere(|| {
        domain.retire(Box::new(BOMB)).unwrap();
        domain.retire(Asked(AtomicU32::new(0))).unwrap();
        domain.retire(Box::new((BOMB, [0_u8; 1000]))).unwrap();
    });
    until(|| domain.statistics().callbacks_run >= 3);
}

/// The end of a domain, on the worker.
fn end_of_a_domain() {
    let domain = Domain::new();
    let inside = domain.clone();
    let (dropped, has_dropped) = mpsc::channel::<()>();
    let (sender, ended) = mpsc::channel::<()>();
    domain
        .call_hurry(move || {
            has_dropped.recv().unwrap_err();
            inside.call(|| panic_any(BOMB)).unwrap();
            inside.retire(Box::new(BOMB)).unwrap();
            inside.call(move || drop(sender)).unwrap();
            drop(inside); // the last handle but the worker's
        })
        .unwrap();
    drop(domain);
    drop(dropped);
    ended.recv().unwrap_err();
}

/// The hook for reports of stalls, on the reporter, which is a thread of its own; the next report
/// is made by the same.
fn hook() {
    let (sender, reported) = mpsc::channel();
    let owned = Arc::new(BOMB);
    let hook = move |_: &StallReport| {
        let _owned = &owned;
        sender.send(thread::current().id()).unwrap();
        panic_any(BOMB);
    };
    quiescence::report::set_stall_hook(hook);
    let domain = Domain::new();
    tune(&domain, |tuning| tuning.stall_after = Some(Duration::from_millis(1)));
    thread::scope(|scope| {
        let guard = domain.read();
        scope.spawn(|| domain.synchronize());
        let reporter = reported.recv().unwrap();
        assert_eq!(reported.recv(), Ok(reporter), "when its age has doubled");
        drop(guard);
    });
    let hook = quiescence::report::take_stall_hook().expect("the one above");
    std::mem::forget(hook);
}

const CASES: [(&str, fn()); 6] = [
    ("drop of a waker", drop_of_a_waker),
    ("call of a waker", call_of_a_waker),
    ("callbacks", callbacks),
    ("objects", objects),
    ("end of a domain", end_of_a_domain),
    ("hook", hook),
];

#[test]
fn whatever_panics_there_is_the_same_thread_as_before() {
    let Some(role) = role() else {
        return CASES.iter().for_each(|(case, _)| passes_again(this_test!(), case, &[]));
    };
    let (_, act) = CASES.iter().find(|(case, _)| *case == role).expect("a case");
    let before = worker();
    act();
    for _ in 0..3 {
        assert_eq!(worker(), before);
    }
    assert_eq!(Domain::global().statistics().worker_restarts, 0);
    Domain::global().call_hurry(|| ()).unwrap();
    quiescence::barrier();
}
