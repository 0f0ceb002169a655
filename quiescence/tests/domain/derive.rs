//! `#[derive(Weigh)]`: each kind of type, and what the compiler says where it is missing.

#![allow(dead_code, reason = "types that are weighed, not used")]

use std::marker::PhantomData;

use quiescence::Weigh;

use crate::compiler::Compiler;

#[derive(Weigh)]
struct Table {
    name: String,
    /// Documented.
    rows: Vec<[u64; 8]>,
    version: u64,
}

#[derive(Weigh)]
struct Pair(String, pub(crate) Vec<u8>);

#[derive(Weigh)]
struct Parenthesised(pub (u64, String));

#[derive(Weigh)]
struct PublicTuple(pub (crate::derive::Pair, String));

#[derive(Weigh)]
struct Unit;

#[derive(Weigh)]
struct Empty {}

#[derive(Clone, Copy, Weigh)]
struct Point {
    x: i32,
    y: i32,
}

#[derive(Weigh)]
enum Shape {
    None,
    Circle(f64),
    Named { name: String, r#type: Vec<u8> },
    Tagged(String, Box<u64>),
}

#[derive(Weigh)]
#[repr(u8)]
enum Numbered {
    One = 1,
    Two = { 1 + 1 },
    Four = 1 << 2,
    Eight = if 3 < 2 { 7 } else { first::<u8, u16>(8, 9) },
    Sixteen = <u8 as Constant<u8, u16>>::OF << 1,
    Last = u8::MAX,
}

const fn first<A: Copy, B: Copy>(first: A, _: B) -> A {
    first
}

trait Constant<A, B> {
    const OF: u8;
}

impl Constant<u8, u16> for u8 {
    const OF: u8 = 8;
}

#[derive(Weigh)]
#[repr(u8)]
enum Shifted {
    Text(String) = 1 << 2,
    Bytes { bytes: Vec<u8> } = 1 << 3,
}

#[derive(Weigh)]
enum Never {}

#[derive(Weigh)]
struct Generic<'a, T: Clone, U: ?Sized, const N: usize = 4>
where
    T: PartialEq,
    for<'b> fn(&'b U) -> bool: Clone,
{
    values: [T; N],
    name: &'a str,
    kind: PhantomData<fn(T) -> u8>,
    last: Box<U>,
}

#[derive(Weigh)]
struct Defaults<T = Vec<u8>, U = (T, Option<T>)>(T, U)
where
    T: Clone;

#[derive(Weigh)]
struct Last<T: ?Sized> {
    number: u64,
    last: T,
}

#[derive(Weigh)]
struct Calls<F: Fn(u8) -> Vec<u8>, T: Clone = u8>(PhantomData<F>, T);

/// A list of its own kind.
#[derive(Weigh)]
struct Node {
    name: String,
    next: Option<Box<Self>>,
}

macro_rules! make {
    ($name:ident, $field:ident, $type:ty) => {
        #[derive(Weigh)]
        struct $name {
            $field: $type,
            field_0: $crate::derive::Pair,
        }
    };
}
make! { Made, inside, Option<Vec<(u8, String)>> }

macro_rules! declare {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($of:vis $field:ident: $type:ty),* }) => {
        #[derive(Weigh)]
        $(#[$meta])*
        $vis struct $name { $($of $field: $type),* }
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident($($of:vis $type:ty),*);) => {
        #[derive(Weigh)]
        $(#[$meta])*
        $vis struct $name($($of $type),*);
    };
}
declare! {
    /// Documented.
    pub(crate) struct Declared { pub name: String, pub(crate) bytes: Vec<u8>, number: u64 }
}
declare! { struct DeclaredTuple(pub String, (u8, String)); }
declare! { #[derive(Clone, Copy)] struct DeclaredPoint(i32, i32); }

macro_rules! borrow {
    ($name:ident, $lifetime:lifetime, $longer:lifetime) => {
        #[derive(Weigh)]
        struct $name<$lifetime, $longer: $lifetime, T: $lifetime>
        where
            $longer: $lifetime,
        {
            name: &$lifetime str,
            longer: &$longer str,
            value: T,
        }
    };
}
macro_rules! forward {
    ($lifetime:lifetime) => {
        borrow! { Borrowed, $lifetime, 'b }
    };
}
forward! { 'a }

macro_rules! handle {
    ($type:ty) => {
        #[derive(Weigh)]
        struct Handled($type, String);
    };
}
handle! { for<'a> unsafe fn(&'a str) -> &'a str }

#[derive(Weigh)]
struct Route {
    path: String,
    handler: fn(&str, &mut Vec<u8>) -> usize,
    foreign: unsafe extern "C" fn(*const u8),
    five: fn(u8, u8, u8, u8, u8),
}

#[derive(Weigh)]
struct Handlers(fn(&str), for<'a> fn(&'a str) -> &'a str, extern "C" fn(), unsafe fn(&str));

#[derive(Weigh)]
struct Conditional {
    #[cfg(not(panic = "unwind"))]
    gone: Unknown,
    #[cfg(panic = "unwind")]
    there: String,
}

fn text(bytes: usize) -> String {
    String::with_capacity(bytes)
}

#[test]
fn what_the_fields_own_is_added_up() {
    let table = Table { name: text(10), rows: Vec::with_capacity(4), version: 1 };
    assert_eq!((table.owned(), table.weight()), (10 + 256, 266 + size_of::<Table>()));
    assert_eq!(Pair(text(3), Vec::with_capacity(4)).owned(), 7);
    assert_eq!(Parenthesised((1, text(9))).owned(), 9);
    assert_eq!((Unit.owned(), Empty {}.owned(), Point { x: 1, y: 2 }.owned()), (0, 0, 0));
    let shapes = [
        Shape::None,
        Shape::Circle(1.0),
        Shape::Named { name: text(2), r#type: Vec::with_capacity(3) },
        Shape::Tagged(text(5), Box::new(1)),
    ];
    assert_eq!(shapes.map(|shape| shape.owned()), [0, 0, 5, 13]);
    assert_eq!(Numbered::One.owned() + Numbered::Two.owned(), 0);
    assert_eq!(Shifted::Text(text(2)).owned(), 2);
    assert_eq!(Shifted::Bytes { bytes: Vec::with_capacity(3) }.owned(), 3);
    assert_eq!(PublicTuple((Pair(text(1), Vec::new()), text(2))).owned(), 3);
    assert_eq!(Calls::<fn(u8) -> Vec<u8>, _>(PhantomData, text(4)).owned(), 4);
    let declared = Declared { name: text(1), bytes: Vec::with_capacity(2), number: 3 };
    assert_eq!((declared.owned(), DeclaredTuple(text(4), (5, text(6))).owned()), (3, 10));
    let borrowed = Borrowed { name: "", longer: "", value: text(5) };
    assert_eq!(borrowed.owned(), 5);
    const extern "C" fn foreign(_: *const u8) {}
    let handler = |_: &str, _: &mut Vec<u8>| 0;
    let route = Route { path: text(3), handler, foreign, five: |_, _, _, _, _| () };
    assert_eq!((route.owned(), Handled(|name| name, text(2)).owned()), (3, 2));
    assert_eq!(Conditional { there: text(6) }.owned(), 6);
    let made = Made { inside: Some(Vec::with_capacity(2)), field_0: Pair(text(1), Vec::new()) };
    assert_eq!(made.owned(), 2 * size_of::<(u8, String)>() + 1);
    let next = Some(Box::new(Node { name: text(2), next: None }));
    assert_eq!(Node { name: text(1), next }.owned(), 1 + size_of::<Node>() + 2);
}

#[test]
fn generics_are_weighed_by_what_they_are() {
    let kind = PhantomData;
    let last: Box<[u8]> = Box::from([0; 5]);
    let values = [text(1), text(2)];
    let generic: Generic<'_, String, [u8], 2> = Generic { values, name: "no", kind, last };
    assert_eq!(generic.owned(), 3 + 5);
    let bytes = |count| Vec::<u8>::with_capacity(count);
    assert_eq!(Defaults(bytes(1), (bytes(2), Some(bytes(3)))).owned(), 6);
    let last: Box<Last<[String]>> = Box::new(Last { number: 1, last: [text(3), text(4)] });
    assert_eq!(Weigh::owned(&*last), 7);
}

#[test]
fn a_type_owns_if_a_field_does() {
    assert_eq!([Handlers::OWNS, Route::OWNS], [false, true]);
    assert_eq!([Table::OWNS, Shape::OWNS, Node::OWNS, Made::OWNS], [true; 4]);
    let nothing = [Unit::OWNS, Empty::OWNS, Point::OWNS, Never::OWNS, Numbered::OWNS];
    assert_eq!(nothing, [false; 5]);
    assert_eq!([Last::<Vec<u8>>::OWNS, Last::<u8>::OWNS], [true, false]);
}

/// A field may be deprecated, names of primitives taken, and a discriminant anything.
#[test]
#[deny(deprecated)]
#[allow(clippy::builtin_type_shadow, clippy::unnecessary_cast)]
fn what_the_derive_writes_warns_of_nothing_and_takes_no_names() {
    #[allow(non_camel_case_types)]
    mod inner {
        #[deprecated]
        #[derive(quiescence::Weigh)]
        pub(super) struct Old(String);
        #[derive(quiescence::Weigh)]
        #[allow(deprecated)]
        pub(super) struct Has {
            pub(super) old: Option<Old>,
        }
        #[derive(quiescence::Weigh)]
        pub(super) struct Taken<usize>(pub(super) Vec<usize>);
        pub(super) trait Of<A, B> {
            const X: isize;
        }
        impl Of<u8, u16> for u8 {
            const X: isize = 3;
        }
        #[derive(quiescence::Weigh)]
        #[repr(isize)]
        pub(super) enum Numbered {
            First = 60 as isize + <u8 as Of<u8, u16>>::X,
            Second(String) = if true { 1 } else { 2 },
        }
    }
    assert_eq!(inner::Has { old: None }.owned(), 0);
    assert_eq!(inner::Taken(vec![0_u8; 7]).owned(), 7);
    assert_eq!(inner::Numbered::First.owned(), 0);
    assert_eq!(inner::Numbered::Second("four".into()).owned(), 4);
}

/// A past error: the parameter was passed on as that type.
#[test]
fn a_constant_parameter_may_have_the_name_of_a_type() {
    struct N;
    #[derive(Weigh)]
    struct Sized<const N: usize>([String; N]);
    assert_eq!(Sized([text(3), text(4)]).owned(), 7);
}

/// A past error: the comma between the arguments ended the variant.
#[test]
fn a_cast_in_a_discriminant_may_be_to_a_generic_type() {
    trait Of<B> {
        type X;
    }
    impl Of<u16> for u8 {
        type X = isize;
    }
    type Alias<A, B> = <A as Of<B>>::X;
    #[derive(Weigh)]
    #[repr(isize)]
    enum Numbered {
        First(String) = 7 as Alias<u8, u16>,
        Second = 1 << 2,
    }
    assert_eq!(Numbered::First(text(5)).owned(), 5);
}

/// A pattern that is a name stands for the constant of that name, if there is one.
#[test]
fn constants_of_the_user_are_no_patterns() {
    #[allow(non_upper_case_globals, dead_code)]
    const field_0: &str = "";
    #[derive(Weigh)]
    struct Named {
        name: String,
    }
    assert_eq!(Named { name: String::with_capacity(9) }.owned(), 9);
}

/// The first note names the derive, wherever `Weigh` is asked for; and the compiler suggests no
/// borrow.
#[test]
fn where_weigh_is_missing_the_first_note_names_the_derive() {
    let Some(compiler) = Compiler::find() else { return };
    let uses = [
        "quiescence::Rcu::new(Config)",
        "quiescence::RcuOption::<Config>::new(Config)",
        "quiescence::ArcCell::<Config>::new(std::sync::Arc::new(Config))",
        "quiescence::collections::HashMap::<u64, Config>::new()",
        "quiescence::collections::HashSet::<Config>::new()",
        "quiescence::collections::IdMap::<Config>::new()",
        "quiescence::collections::List::<Config>::new()",
    ];
    for expression in uses {
        let program = format!("pub struct Config; pub fn f() {{ let _ = {expression}; }}");
        let said = compiler.compile(&program).expect_err(expression);
        let derive = "#[derive(quiescence::Weigh)]";
        let of_weigh = said.find("does not say how much memory it owns");
        let of_weigh = &said[of_weigh.unwrap_or_else(|| panic!("{expression}: {said}"))..];
        assert!(of_weigh.lines().next().unwrap().contains(derive), "{expression}: {said}");
        for way in ["`impl Weigh for dyn Trait`", "`HashMap::builder().build_with_weight`"] {
            assert!(said.contains(way), "{expression}: {said}");
        }
        let note = of_weigh.lines().find(|line| line.trim_start().starts_with("= note:"));
        assert!(note.is_some_and(|note| note.contains(derive)), "{expression}: {said}");
        assert!(!said.contains("consider borrowing"), "{expression}: {said}");
    }
}

#[test]
fn what_cannot_be_derived_is_told() {
    let Some(compiler) = Compiler::find() else { return };
    for (item, told) in [
        ("union U { a: u8, b: u8 }", "a union does not know its field"),
        ("struct S(std::process::Child);", "`Child` does not say how much memory it owns"),
        (
            "struct S<T>(T); pub fn f(s: S<std::process::Child>) { quiescence::Weigh::owned(&s); }",
            "Child",
        ),
        ("#[weigh(copied)] struct S;", "cannot find attribute `weigh`"),
    ] {
        let program = format!("#[derive(quiescence::Weigh)] {item}");
        let said = compiler.compile(&program).expect_err(item);
        assert!(said.contains(told), "{item}: {said}");
    }
}
