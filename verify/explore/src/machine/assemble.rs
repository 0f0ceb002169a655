//! Reads programs from a text in `worlds/programs`, for a scenario and a mutant.
//!
//! A line that is not indented begins an item, of which the indented lines after it are the rest:
//! - `const NAME NUMBER`, unless the scenario has another number; `register NAME REGISTER`, another
//!   name of a register;
//! - `place NAME`, one word of memory or, with a number behind it, several, and what they are at
//!   the start; `objects` and `handler`, fields of a [`Plan`]; `end`, what must hold in the end;
//! - `def`, a name for some lines, with parameters; `each`, one for lines that the scenario has,
//!   each of which gets these parameters;
//! - `thread ROLE NAME`, the program of the threads of a role, and their name in traces.
//!
//! A program has an instruction a line, after labels, if any. One after `&` happens in one step
//! with the one before it. In an address such as `lock[index*2+here]` the register `index` and the
//! number of this CPU say which word it is. A line ends with conditions: `?a|b` holds if one of
//! these is the mutant or true of the scenario, `!a|b` if none is; `a=1` is true if that is the
//! constant's number. An order such as `acquire/a|b` is relaxed if one is. A label that begins with
//! a dot is the own one of each use of a `def`.

use core::sync::atomic::Ordering;
use std::collections::HashMap;

use super::code::{At, Code, Op, Reg, Value};
use super::scenario::Scenario;
use super::world::{End, Place, Plan, Program, Term};
use crate::harness::variant;
use crate::memory::LOCATIONS;

macro_rules! texts {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../worlds/programs/", $name, ".txt")))),*]
    };
}

const TEXTS: &[(&str, &str)] = texts![
    "snapshot" "guard" "counts" "growing" "local-global" "exact-counter" "folding" "big-ref"
    "srcu" "hazard" "sequence" "writers"
];
const COMMON: &str = include_str!("../../worlds/programs/common.txt");

/// The words of a line.
type Line = Vec<String>;

/// Lines with a name, and their parameters.
#[derive(Clone, Debug)]
struct Definition {
    parameters: Line,
    body: Vec<Line>,
}

struct Assembler<'a> {
    scenario: &'a Scenario,
    /// As the texts call it; empty if there is none.
    mutant: &'static str,
    registers: HashMap<&'static str, Reg>,
    constants: HashMap<&'static str, u64>,
    definitions: HashMap<&'static str, Definition>,
    /// How often one was used.
    uses: usize,
    plan: Plan,
}

/// What is to be explored, as the scenario's text has it.
pub(super) fn assemble(scenario: &Scenario, mutant: &'static str) -> Plan {
    let mut assembler = Assembler {
        scenario,
        mutant,
        registers: HashMap::new(),
        constants: HashMap::from([("cpus", scenario.cpus as u64)]),
        definitions: HashMap::new(),
        uses: 0,
        plan: Plan {
            programs: Vec::new(),
            shared_cpus: scenario.cpus,
            places: Vec::new(),
            initial: [0; LOCATIONS],
            objects: 1,
            handler: None,
            faults: scenario.faults,
            disturbances_max: None,
            delay: scenario.delay.function(),
            omitted: mutant.strip_prefix("without-").unwrap_or_default(),
            end: End::Any,
        },
    };
    let text = TEXTS.iter().find(|(name, _)| *name == scenario.program);
    let (_, text) = text.unwrap_or_else(|| panic!("no program is called {}", scenario.program));
    let mut items: Vec<(&str, Vec<Line>)> = Vec::new();
    for line in COMMON.lines().chain(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim_end();
        match items.last_mut() {
            _ if line.trim().is_empty() => {}
            Some((_, body)) if line.starts_with(' ') => {
                body.push(line.split_whitespace().map(str::to_owned).collect());
            }
            _ => items.push((line, Vec::new())),
        }
    }
    // What is defined may be used before it is.
    items.sort_by_key(|(head, _)| !head.starts_with("def "));
    items.into_iter().for_each(|(head, body)| assembler.item(head, body));
    let Scenario { name, numbers, lines, threads, .. } = scenario;
    let is_known = numbers.keys().all(|number| assembler.constants.contains_key(number))
        && lines.keys().all(|lines| assembler.definitions.contains_key(lines))
        && threads.values().flatten().count() == assembler.plan.programs.len();
    assert!(is_known, "{name} has something that its program does not");
    assembler.plan
}

impl Assembler<'_> {
    fn item(&mut self, head: &'static str, body: Vec<Line>) {
        let mut words: Vec<&'static str> = head.split_whitespace().collect();
        if !self.holds(&mut words) {
            return;
        }
        match *words {
            ["const", name, number] => {
                let own = self.scenario.numbers.get(name).copied();
                let number = own.unwrap_or_else(|| self.number(number));
                self.constants.insert(name, number);
            }
            ["register", name, reg] => {
                self.registers.insert(name, self.reg(reg));
            }
            ["place", name, ref rest @ ..] => {
                let mut sides = rest.split(|word| *word == "=");
                let count = sides.next().and_then(|count| count.first());
                let count = count.map_or(1, |count| self.number(count) as usize);
                self.place(name, count, sides.next().unwrap_or_default());
            }
            ["objects", count] => self.plan.objects = self.number(count) as u8,
            ["handler", name] => self.plan.handler = Some(self.found(name).first),
            ["end", "released"] => self.plan.end = End::Released,
            ["end", "all-but-the-last", name, ref left @ ..] => {
                let left = left.first().map(|left| self.at(left).fixed());
                self.plan.end = End::AllButTheLast(self.at(name).fixed(), left);
            }
            ["end", ref words @ ..] => {
                let mut sides = words.split(|word| *word == "=");
                let mut side = || sides.next().into_iter().flatten().map(|term| self.term(term));
                self.plan.end = End::Equal([side().collect(), side().collect()]);
            }
            ["def", name, ref parameters @ ..] => {
                let parameters = parameters.iter().map(|one| (*one).to_owned()).collect();
                self.definitions.insert(name, Definition { parameters, body });
            }
            ["each", name, ref parameters @ ..] => {
                let parameters: Line = parameters.iter().map(|one| (*one).to_owned()).collect();
                let lines = self.scenario.lines.get(name).into_iter().flatten();
                let body = lines.map(|word| [&[(*word).to_owned()], &parameters[..]].concat());
                let body = body.collect();
                self.definitions.insert(name, Definition { parameters, body });
            }
            ["thread", role, name] => self.thread(role, name, &body),
            _ => panic!("not an item: {head}"),
        }
    }

    /// Takes the conditions off a line. Whether they hold.
    fn holds<W: AsRef<str>>(&self, words: &mut Vec<W>) -> bool {
        let mut holds = true;
        words.retain(|word| {
            let word = word.as_ref();
            let Some(names) = word.strip_prefix(['?', '!']) else { return true };
            holds &= self.is_one(names) == word.starts_with('?');
            false
        });
        holds
    }

    fn is_one(&self, names: &str) -> bool {
        names.split('|').any(|name| match name.split_once('=') {
            Some((constant, number)) => self.number(constant) == self.number(number),
            None => name == self.mutant || self.scenario.holds.contains(&name),
        })
    }

    fn place(&mut self, name: &'static str, count: usize, values: &[&str]) {
        let first = self.plan.places.last().map_or(0, |last| last.first + last.count);
        self.plan.places.push(Place { name, first, count });
        for (at, value) in (first..).zip(values) {
            self.plan.initial[at] = self.number(value);
        }
    }

    fn found(&self, name: &str) -> Place {
        let found = self.plan.places.iter().find(|place| place.name == name);
        *found.unwrap_or_else(|| panic!("no place is called {name}"))
    }

    fn thread(&mut self, role: &str, name: &'static str, body: &[Line]) {
        let mut code = Code::default();
        self.emit(&mut code, body);
        let seats = self.scenario.threads.get(role).into_iter().flatten();
        let programs = seats.map(|seat| Program { name, code: code.clone(), seat: *seat });
        self.plan.programs.extend(programs);
    }

    /// Adds lines to a program.
    fn emit(&mut self, code: &mut Code, body: &[Line]) {
        for line in body {
            let mut words: Vec<&str> = line.iter().map(String::as_str).collect();
            if !self.holds(&mut words) {
                continue;
            }
            while let Some(label) = words.first().and_then(|word| word.strip_suffix(':')) {
                code.place(label);
                words.remove(0);
            }
            if words.first() == Some(&"&") {
                code.join();
                words.remove(0);
            }
            let Some(name) = words.first() else { continue };
            match self.definitions.get(*name).cloned() {
                Some(definition) => self.expand(code, &definition, &words[1..]),
                None => self.op(code, &words),
            }
        }
    }

    fn expand(&mut self, code: &mut Code, definition: &Definition, arguments: &[&str]) {
        let Definition { parameters, body } = definition;
        assert_eq!(parameters.len(), arguments.len(), "{parameters:?} are {arguments:?}");
        self.uses += 1;
        let given = |word: &String| match parameters.iter().position(|one| one == word) {
            Some(index) => arguments[index].to_owned(),
            None if word.starts_with('.') => format!("{}{word}", self.uses),
            None => word.clone(),
        };
        let body: Vec<Line> = body.iter().map(|line| line.iter().map(given).collect()).collect();
        self.emit(code, &body);
    }

    fn op(&self, code: &mut Code, words: &[&str]) {
        let op = match *words {
            ["arm", start, end, abort] => {
                let [start, end, abort] = [start, end, abort].map(|name| code.label(name));
                Op::Arm { start, end, abort }
            }
            ["number"] => Op::CpuNumber,
            [how @ ("load" | "plus" | "minus"), to, ref places @ .., order] => {
                let how: fn(u64, u64) -> u64 = match how {
                    "load" => |_, found| found,
                    "plus" => u64::wrapping_add,
                    _ => u64::wrapping_sub,
                };
                let (to, order) = (self.reg(to), self.order(order));
                let load = |at: &&str| code.ops.push(Op::Load { to, how, at: self.at(at), order });
                return places.iter().for_each(load);
            }
            ["store", at, value, order] => {
                Op::Store { at: self.at(at), value: self.value(value), order: self.order(order) }
            }
            ["add", at, by, order] => {
                Op::Add { at: self.at(at), by: self.number(by), order: self.order(order) }
            }
            ["locked-add", at, by, before, order] => {
                self.update([at, by, before, order], u64::wrapping_add, (|_, _| false, "0"))
            }
            ["locked-add-unless-is", at, by, value, before, order] => {
                self.update([at, by, before, order], u64::wrapping_add, (|a, b| a == b, value))
            }
            ["locked-add-unless-bits", at, by, bits, before, order] => {
                let has_any: fn(u64, u64) -> bool = |a, bits| a & bits != 0;
                self.update([at, by, before, order], u64::wrapping_add, (has_any, bits))
            }
            ["swap", at, value, before, order] => {
                self.update([at, value, before, order], |_, value| value, (|_, _| false, "0"))
            }
            ["fence"] | ["barrier", "own"] => Op::Fence(Ordering::SeqCst),
            ["acquire-fence"] => Op::Fence(Ordering::Acquire),
            ["release-fence"] => Op::Fence(Ordering::Release),
            ["barrier", kind] => {
                Op::Barrier(variant(kind).unwrap_or_else(|| panic!("no barrier is {kind}")))
            }
            ["new", to] => Op::New(self.reg(to)),
            ["new-at", object] => Op::NewAt(self.number(object) as u8),
            ["touch", object] => Op::Touch(self.reg(object)),
            ["free", object] => Op::Free(self.reg(object)),
            ["read-copy", copy] => Op::ReadCopy(self.reg(copy)),
            ["write-copy", copy] => Op::WriteCopy(self.number(copy) as u8),
            ["value", first, second, newest] => Op::IsValue {
                first: self.reg(first),
                second: self.reg(second),
                newest: self.reg(newest),
            },
            ["lock", at] => Op::Lock(self.at(at).fixed()),
            ["unlock", at] => Op::Unlock(self.at(at).fixed()),
            ["sleep", at, seen] => Op::Sleep(self.at(at).fixed(), self.reg(seen)),
            ["await", at, seen] => Op::Await(self.at(at).fixed(), self.reg(seen)),
            ["wake", at] => Op::Wake(self.at(at).fixed()),
            ["request"] => Op::Request { cookie: None, is_locked: false },
            ["request", cookie, locked] => {
                Op::Request { cookie: Some(self.reg(cookie)), is_locked: self.number(locked) != 0 }
            }
            ["if-ended", cookie, to] => Op::IfEnded(self.reg(cookie), code.label(to)),
            ["if-past", of, cookie, to] => {
                Op::IfPast(self.reg(of), self.reg(cookie), code.label(to))
            }
            ["rest"] => Op::Rest,
            ["rest", at, value] => Op::RestAt(self.at(at).fixed(), self.value(value)),
            ["drive", check, flip, idle] => {
                let [check, flip, idle] = [check, flip, idle].map(|name| code.label(name));
                Op::Drive { check, flip, hand_out: None, idle, is_locked: false }
            }
            ["drive", check, flip, hand_out, idle, locked] => {
                let [check, flip, idle] = [check, flip, idle].map(|name| code.label(name));
                let (hand_out, is_locked) = (Some(code.label(hand_out)), self.number(locked) != 0);
                Op::Drive { check, flip, hand_out, idle, is_locked }
            }
            ["checked"] => Op::Checked,
            ["flipped"] => Op::Flipped,
            ["handed-out"] => Op::HandedOut,
            ["exact", found] => Op::IsExact(self.reg(found)),
            ["counted"] => Op::Counted,
            ["set", to, value] => Op::Set(self.reg(to), self.value(value)),
            ["clear", ref regs @ ..] => {
                let clear = |of: &&str| code.ops.push(Op::Set(self.reg(of), Value::Is(0)));
                return regs.iter().for_each(clear);
            }
            ["raise", to, by] => Op::Calculate(self.reg(to), u64::wrapping_add, self.value(by)),
            ["mask", to, by] => Op::Calculate(self.reg(to), |a, b| a & b, self.value(by)),
            ["join", to, by] => Op::Calculate(self.reg(to), |a, b| a | b, self.value(by)),
            ["part", to, by] => Op::Calculate(self.reg(to), |a, b| a ^ b, self.value(by)),
            ["bit", to, by] => Op::Calculate(self.reg(to), |_, bit| 1 << bit, self.value(by)),
            [how @ ("if-is" | "if-not" | "if-less" | "if-none"), of, value, to] => {
                let holds: fn(u64, u64) -> bool = match how {
                    "if-is" => |a, b| a == b,
                    "if-not" => |a, b| a != b,
                    "if-less" => |a, b| a < b,
                    _ => |a, bits| a & bits == 0,
                };
                Op::If(self.reg(of), holds, self.value(value), code.label(to))
            }
            ["goto", to] => Op::Goto(code.label(to)),
            _ => panic!("not an instruction: {words:?}"),
        };
        code.ops.push(op);
    }

    fn update(
        &self,
        [at, by, before, order]: [&str; 4],
        how: fn(u64, u64) -> u64,
        (unless, number): (fn(u64, u64) -> bool, &str),
    ) -> Op {
        let (at, by, order) = (self.at(at), self.value(by), self.order(order));
        let unless = (unless, self.number(number));
        Op::Update { at, how, by, unless, before: self.reg(before), order }
    }

    fn order(&self, text: &str) -> Ordering {
        let (order, relaxed) = text.split_once('/').unwrap_or((text, ""));
        match order {
            _ if !relaxed.is_empty() && self.is_one(relaxed) => Ordering::Relaxed,
            "relaxed" => Ordering::Relaxed,
            "acquire" => Ordering::Acquire,
            "release" => Ordering::Release,
            "acq-rel" => Ordering::AcqRel,
            _ => panic!("not an order: {text}"),
        }
    }

    fn at(&self, text: &str) -> At {
        let (name, index) = text.split_once('[').unwrap_or((text, "0]"));
        let Place { first, count, .. } = self.found(name);
        let mut at = At { first, count, offset: 0, by: None, is_own: false };
        for term in index.trim_end_matches(']').split('+') {
            let (factor, times) = term.split_once('*').unwrap_or((term, "1"));
            match self.register(factor) {
                Some(reg) => at.by = Some((reg, self.number(times) as usize)),
                None if term == "here" => at.is_own = true,
                None => at.offset += self.number(term) as usize,
            }
        }
        at
    }

    fn value(&self, text: &str) -> Value {
        self.register(text).map_or_else(|| Value::Is(self.number(text)), Value::In)
    }

    /// A sum of numbers and constants, of either sign.
    fn number(&self, text: &str) -> u64 {
        let term = |term: &str| {
            let name = term.trim_start_matches('-');
            let known = self.constants.get(name).copied().or_else(|| name.parse().ok());
            let number: u64 = known.unwrap_or_else(|| panic!("not a number: {text}"));
            if name == term { number } else { number.wrapping_neg() }
        };
        text.split('+').map(term).fold(0, u64::wrapping_add)
    }

    fn term(&self, text: &str) -> Term {
        match text {
            "counted" => Term::Counted,
            "handled" => Term::Handled,
            _ => match self.plan.places.iter().find(|place| place.name == text) {
                Some(place) => Term::At(*place),
                None => Term::Is(self.number(text)),
            },
        }
    }

    fn register(&self, name: &str) -> Option<Reg> {
        self.registers.get(name).copied().or_else(|| variant(name))
    }

    fn reg(&self, name: &str) -> Reg {
        self.register(name).unwrap_or_else(|| panic!("no register is called {name}"))
    }
}
