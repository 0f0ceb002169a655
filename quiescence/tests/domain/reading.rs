//! References that are their own sections: [`RcuRef`], [`OwnedRcuRef`], `with`; and what the
//! compiler says of a guard that leaves its thread.

use crate::common::*;
use crate::compiler::Compiler;

use quiescence::{
    OwnedRcuRef, RcuRef,
    tag::{DomainTag, Sleepable},
};

quiescence::domain! {
    /// Of these tests.
    struct Declared;
}

/// Has a part, and says when it is dropped.
struct Value {
    name: String,
    alive: Arc<()>,
}

impl Weigh for Value {}

impl Value {
    fn new(name: &str) -> (Self, Weak<()>) {
        let alive = Arc::new(());
        let witness = Arc::downgrade(&alive);
        (Self { name: name.to_owned(), alive }, witness)
    }
}

fn is_alive(witness: &Weak<()>) -> bool {
    witness.strong_count() > 0
}

/// A reference protects what it refers to, and nothing else does.
fn protects<K: DomainTag>(domain: &Domain<K>) {
    let (first, witness) = Value::new("first");
    let place = Rcu::new_in(first, domain.clone());

    let seen = place.read();
    let cookie = domain.start_poll();
    place.store(Value::new("second").0);
    assert!(!domain.poll(cookie), "the reference is a section");
    // What is retired is dropped by other calls; none may drop this.
    for _ in 0..100 {
        domain.try_call(|| ()).expect("far from the limit");
        assert!(!domain.poll(cookie));
    }
    assert_eq!((seen.name.as_str(), place.read().name.as_str()), ("first", "second"));
    assert!(is_alive(&witness));

    // A part of it protects the whole.
    let part = RcuRef::map(seen, |value| value.name.as_str());
    assert!(!domain.poll(cookie) && is_alive(&witness));
    let Err(part) = RcuRef::filter_map(part, |name| name.get(100..)) else {
        panic!("it is not so long");
    };
    let part = RcuRef::filter_map(part, |name| name.get(1..)).expect("it has it");
    assert!(!domain.poll(cookie) && is_alive(&witness));
    assert_eq!((&*part, part.to_string()), ("irst", "irst".to_owned()));

    drop(part);
    domain.barrier();
    assert!(!is_alive(&witness), "nothing else keeps it");
}

#[test]
fn a_reference_is_a_section_in_every_kind_of_domain() {
    protects(&Domain::global());
    protects(&Domain::of(Declared));
    protects(&Domain::new());
    protects(&Srcu::new().domain());
}

#[test]
fn an_empty_place_gives_none_and_leaves_no_section() {
    let domain = Domain::new();
    let place: RcuOption<Value> = RcuOption::empty();
    assert!(place.read().is_none() && place.with(|value| value.is_none()));
    let place = RcuOption::new_in(None::<u64>, domain.clone());
    assert!(place.read().is_none());
    domain.synchronize(); // would panic in a section
    place.store(Some(7));
    assert_eq!(place.read().as_deref(), Some(&7));
    assert_eq!(place.with(|value| value.copied()), Some(7));
    domain.synchronize();

    let place = Arc::new(RcuOption::new_in(None::<u64>, Srcu::new().domain()));
    assert!(place.read_owned().is_none());
    place.domain().synchronize(); // would wait for ever
    place.store(Some(7));
    assert_eq!(place.read_owned().as_deref(), Some(&7));
}

#[test]
fn the_section_of_with_ends_also_by_a_panic() {
    let domain = Domain::new();
    let place = Rcu::new_in(String::from("value"), domain.clone());
    let length = place.with(|value| {
        panic_of(|| domain.synchronize());
        value.len()
    });
    assert_eq!(length, 5);
    panic_of(|| place.with(|_| panic!("in the section")));
    panic_of(|| drop(RcuRef::map(place.read(), |_| -> &str { panic!("in the section") })));
    domain.synchronize(); // would panic in a section
}

/// Borrows its owner and no guard.
struct Server {
    value: Rcu<Value>,
}

impl Server {
    fn value(&self) -> RcuRef<'_, Value> {
        self.value.read()
    }

    fn name(&self) -> RcuRef<'_, str> {
        RcuRef::map(self.value(), |value| value.name.as_str())
    }
}

#[test]
fn a_function_returns_a_reference() {
    let server = Server { value: Rcu::new(Value::new("first").0) };
    let (value, name) = (server.value(), server.name());
    server.value.store(Value::new("second").0);
    assert_eq!((value.name.as_str(), &*name, &*server.name()), ("first", "first", "second"));
    assert_eq!(Arc::strong_count(&value.alive), 1);
    assert_eq!(
        format!("{:?} {name}", RcuRef::map(server.value(), |v| &v.name)),
        "\"second\" first"
    );
}

static EMPTY: RcuOption<u64, Declared> = RcuOption::empty_in(Domain::of(Declared));
static LAZY: LazyLock<Rcu<Value, Sleepable>> =
    LazyLock::new(|| Srcu::named("lazy").rcu(Value::new("first").0));

#[test]
fn places_in_statics() {
    assert!(EMPTY.read().is_none());
    EMPTY.store(Some(7));
    assert_eq!(*EMPTY.read().expect("stored above"), 7);

    let seen: RcuRef<'static, Value, Sleepable> = LAZY.read();
    LAZY.store(Value::new("second").0);
    let name = thread::spawn(move || seen.name.clone()).join().expect("no panic");
    assert_eq!(name, "first", "it went to another thread, and ended there");
    LAZY.domain().synchronize();
}

#[test]
fn an_owned_reference_keeps_the_value_the_place_and_the_domain() {
    let (value, witness) = Value::new("only");
    let place = Arc::new(Rcu::sleepable(value));
    let part = OwnedRcuRef::map(place.read_owned(), |value| value.name.as_str());
    let Err(part) = OwnedRcuRef::filter_map(part, |name| name.get(9..)) else {
        panic!("it is not so long");
    };
    drop(place); // the last handle but that of the reference
    let (hand, handed) = mpsc::channel::<OwnedRcuRef<str>>();
    let other = thread::spawn(move || {
        let part = handed.recv().expect("it comes");
        let part = OwnedRcuRef::filter_map(part, |name| name.get(..2)).expect("it has it");
        format!("{part} {part:?}")
    });
    assert!(is_alive(&witness));
    hand.send(part).expect("it listens");
    assert_eq!(other.join().expect("no panic"), "on \"on\"");
    assert!(!is_alive(&witness), "the place went with the reference, and the value with the place");
}

#[test]
fn an_owned_reference_protects_until_it_is_dropped_wherever_that_is() {
    let domain = Srcu::new();
    let (first, witness) = Value::new("first");
    let place = Arc::new(domain.rcu(first));
    let seen = place.read_owned();
    assert_eq!(domain.statistics().readers, 1, "it is a section of that domain");
    let cookie = domain.start_poll();
    place.store(Value::new("second").0);
    let seen = thread::spawn(move || seen).join().expect("no panic");
    assert!(!domain.poll(cookie) && is_alive(&witness));
    assert_eq!(seen.name, "first");
    thread::spawn(move || drop(seen)).join().expect("no panic");
    domain.barrier();
    assert!(domain.poll(cookie) && !is_alive(&witness));
}

#[test]
fn values_of_one_srcu_share_its_sections_and_others_do_not() {
    let domain = Srcu::new();
    let (one, two, alone) = (domain.rcu(1), domain.rcu(2), Rcu::sleepable(3));
    let guard = domain.read();
    assert_eq!((*one.load(&guard), *two.load(&guard)), (1, 2));
    assert!(panic_of(|| *alone.load(&guard)).contains("another domain"), "one of its own");
    alone.domain().synchronize(); // does not wait for `guard`
    assert_eq!(*alone.read(), 3);
}

/// Extractors make owned references; handlers hold them across `.await`, on any thread.
#[test]
fn tasks_hold_references_across_awaits_while_the_value_is_replaced() {
    const TASKS: usize = rounds(200, 10);
    let place = Arc::new(Rcu::sleepable(Value::new("0").0));
    let live = Arc::new(AtomicUsize::new(0));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let handle = |seen: OwnedRcuRef<Value>, live: Arc<AtomicUsize>| async move {
            let name = seen.name.clone();
            live.fetch_add(1, SeqCst);
            for _ in 0..10 {
                tokio::task::yield_now().await;
                assert_eq!((seen.name.as_str(), Arc::strong_count(&seen.alive)), (&*name, 1));
            }
        };
        let mut tasks = Vec::new();
        for number in 1..=TASKS {
            tasks.push(tokio::spawn(handle(place.read_owned(), Arc::clone(&live))));
            place.store_async(Value::new(&number.to_string()).0).await;
        }
        for task in tasks {
            task.await.expect("no panic");
        }
        place.domain().barrier_async().await;
    });
    assert_eq!(live.load(SeqCst), TASKS);
    assert_eq!(place.read().name, TASKS.to_string());
    assert_eq!(place.domain().statistics().readers, 0);
}

/// A program, what it is, and what the compiler is to say of it: nothing, if it is fine.
type Program = (&'static str, &'static str, &'static [&'static str]);

const GUARDS: [Program; 9] = [
    (
        "a guard of a sleepable domain goes to another thread",
        "static S: quiescence::Srcu = quiescence::Srcu::new();
         pub fn f() { let guard = S.read(); std::thread::spawn(move || drop(guard)); }",
        &[],
    ),
    (
        "a guard goes to another thread",
        "pub fn f() { let guard = quiescence::read(); std::thread::spawn(move || drop(guard)); }",
        &["stays on the thread that made it", "UnlikeSrcu", "`Srcu::rcu`", "Global"],
    ),
    (
        "a guard of a domain made at run time is shared with another thread",
        "pub fn f(domain: &quiescence::Domain) {
             let guard = domain.read();
             std::thread::scope(|scope| { scope.spawn(|| drop(&guard)); });
         }",
        &["stays on the thread that made it", "`Srcu::rcu`", "Private"],
    ),
    (
        "a guard is held across an await",
        "fn is_send<T: Send>(_: T) {}
         pub fn f() {
             is_send(async {
                 let guard = quiescence::read();
                 std::future::ready(()).await;
                 drop(guard);
             });
         }",
        &["future cannot be sent between threads safely", "`Srcu::rcu`", "`drop` is not enough"],
    ),
    (
        "the block that holds a guard ends before an await, as the note of the last one says",
        "fn is_send<T: Send>(_: T) {}
         pub fn f(config: &'static quiescence::Rcu<u64>) {
             is_send(async {
                 let max = { let guard = quiescence::read(); *config.load(&guard) };
                 std::future::ready(max).await;
             });
         }",
        &[],
    ),
    (
        "a reference is held across an await",
        "fn is_send<T: Send>(_: T) {}
         pub async fn f(value: &quiescence::Rcu<u64>) {
             let seen = value.read();
             std::future::ready(()).await;
             drop(seen);
         }
         pub fn g(value: &'static quiescence::Rcu<u64>) { is_send(f(value)); }",
        &["future cannot be sent between threads safely", "`Srcu::rcu`", "across an await"],
    ),
    (
        "a guard of a QSBR reader is shared with another thread",
        "pub fn f(reader: &quiescence::Qsbr) {
             let guard = reader.read();
             std::thread::scope(|scope| { scope.spawn(|| drop(&guard)); });
         }",
        &["stays on the thread that made it", "`Srcu::rcu`", "Global"],
    ),
    (
        "a guard of `epoch` goes to another thread",
        "pub fn f(guard: quiescence::epoch::Guard) { std::thread::spawn(move || drop(guard)); }",
        &["stays on the thread that made it", "`Srcu::rcu`", "Global"],
    ),
    (
        "a guard of `epoch` is held across an await",
        "fn is_send<T: Send>(_: T) {}
         pub fn f() {
             is_send(async {
                 let guard = quiescence::epoch::pin();
                 std::future::ready(()).await;
                 drop(guard);
             });
         }",
        &["future cannot be sent between threads safely", "`Srcu::rcu`", "`drop` is not enough"],
    ),
];

const HANDLES: [Program; 4] = [
    (
        "a handle goes to another thread",
        "pub fn f(reader: quiescence::Reader) { std::thread::spawn(move || drop(reader)); }",
        &["stays on the thread that made it", "`reader()`", "Global"],
    ),
    (
        "a handle of a domain made at run time is shared with another thread",
        "pub fn f(reader: quiescence::Reader<quiescence::tag::Private>) {
             std::thread::scope(|scope| { scope.spawn(|| drop(reader.read())); });
         }",
        &["stays on the thread that made it", "`reader()`", "Private"],
    ),
    (
        "a QSBR reader that is offline goes to another thread",
        "pub fn f(away: quiescence::QsbrOffline) {
             std::thread::spawn(move || drop(away.online()));
         }",
        &["stays on the thread that made it", "`qsbr()`", "Global"],
    ),
    (
        "a handle to a collector goes to another thread",
        "pub fn f(handle: quiescence::epoch::LocalHandle) {
             std::thread::spawn(move || drop(handle));
         }",
        &["stays on the thread that made it", "Global"],
    ),
];

/// Has the compiler say of each program what it is to say, in one error that names no pointer.
fn assert_said(programs: &[Program]) {
    let Some(compiler) = Compiler::find() else { return };
    for (what, program, said) in programs {
        match compiler.compile(program) {
            Ok(()) => assert!(said.is_empty(), "{what}: it compiles"),
            Err(errors) => {
                assert!(!said.is_empty(), "{what}: {errors}");
                for said in *said {
                    assert!(errors.contains(said), "{what}: no {said:?} in {errors}");
                }
                assert!(!errors.contains("`*"), "{what}: {errors}");
                assert!(errors.contains("due to 1 previous error"), "{what}: {errors}");
            }
        }
    }
}

#[test]
fn the_compiler_names_srcu_where_a_guard_leaves_its_thread() {
    assert_said(&GUARDS);
}

#[test]
fn the_compiler_says_where_to_get_a_handle_where_one_leaves_its_thread() {
    assert_said(&HANDLES);
}

/// A pointer is the first thing that an author of a structure tries.
#[test]
fn the_compiler_says_what_can_be_retired() {
    let Some(compiler) = Compiler::find() else { return };
    for object in ["*mut Node", "std::ptr::NonNull<Node>", "&'static Node", "Node"] {
        let retires = format!("pub fn f(node: {object}) {{ drop(quiescence::retire(node)); }}");
        let errors = compiler.compile(&format!("pub struct Node; {retires}")).expect_err(object);
        for said in ["Box<T>", "implement it", "`raw::retire_with`"] {
            assert!(errors.contains(said), "{object}: no {said:?} in {errors}");
        }
    }
}
