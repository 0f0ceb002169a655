//! Holds documents to their schemas: those of `lab/schema`, which `rcu schema` prints.
//!
//! The keywords are those that the schemas use; another one fails the test, so that no schema says
//! what is not checked. A validator from elsewhere brings dozens of crates: boon, the smallest that
//! was found, took 47 seconds to compile.

use serde_json::{Map, Value, json};

/// Fails unless the document has the schema that it names, and that schema refuses it without any
/// one of its members, with one more, and with any value of another type.
pub(crate) fn hold(document: &Value) {
    let accepted = accepted_changes(document);
    assert!(accepted.is_empty(), "{} is accepted {accepted:?}", document["schema"]);
}

/// Fails unless the document has the schema that it names; the changes of it that this schema
/// accepts, in words.
pub(crate) fn accepted_changes(document: &Value) -> Vec<String> {
    let schema = named(document["schema"].as_str().expect("a document names its schema"));
    let check = |document: &Value| check(&schema, &schema, document, "");
    if let Err(why) = check(document) {
        panic!("{}: {why}", document["schema"]);
    }
    let short = shortened(document);
    let mut changed = Vec::new();
    change(&short, &mut |words, value| changed.push((words, value)));
    assert!(changed.len() > 10, "{document}");
    changed.retain(|(_, document)| check(document).is_ok());
    changed.into_iter().map(|(words, _)| words).collect()
}

fn named(name: &str) -> Value {
    let name = name.strip_prefix("quiescence/").expect("a name of ours");
    let path = format!("{}/schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Checks a value by a schema that is a part of `root`.
fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    for (keyword, operand) in schema.as_object().expect("a schema is an object") {
        match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => {}
            // Beside `properties`, which checks it.
            "additionalProperties" => assert_eq!(operand, false, "{schema}"),
            "$ref" => {
                let pointer = operand.as_str().and_then(|text| text.strip_prefix('#'));
                let schema = pointer.and_then(|pointer| root.pointer(pointer));
                let schema = schema.unwrap_or_else(|| panic!("{operand} is nowhere"));
                check(root, schema, value, at)?;
            }
            "type" => {
                let one = |name: &Value| is_of_type(value, name.as_str().expect("a type's name"));
                let fits =
                    operand.as_array().map_or_else(|| one(operand), |all| all.iter().any(one));
                require(fits, || format!("{at} is {value}, not of type {operand}"))?;
            }
            "const" => require(value == operand, || format!("{at} is {value}, not {operand}"))?,
            "enum" => {
                let known = operand.as_array().expect("a list").contains(value);
                require(known, || format!("{at} is {value}, not one of {operand}"))?;
            }
            "anyOf" => {
                let mut all = operand.as_array().expect("a list").iter();
                let fits = all.any(|schema| check(root, schema, value, at).is_ok());
                require(fits, || format!("{at} is {value}, which is none of {operand}"))?;
            }
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, operand, item, &format!("{at}/{number}"))?;
                }
            }
            "properties" => {
                let is_closed = schema.get("additionalProperties").is_some();
                for (name, member) in value.as_object().into_iter().flatten() {
                    let at = format!("{at}/{name}");
                    match operand.get(name) {
                        Some(schema) => check(root, schema, member, &at)?,
                        None => require(!is_closed, || format!("{at} is unknown"))?,
                    }
                }
            }
            "required" => {
                for name in operand.as_array().expect("a list") {
                    let name = name.as_str().expect("a name");
                    let is_there = value.as_object().is_none_or(|own| own.contains_key(name));
                    require(is_there, || format!("{at}/{name} is missing"))?;
                }
            }
            other => panic!("{other} is no keyword that is checked here"),
        }
    }
    Ok(())
}

fn require(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("{other} is no type"),
    }
}

/// The same with at most two items in each array: the others have no more to say.
fn shortened(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().take(2).map(shortened).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), shortened(value)));
            members.collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// Makes each change of a value, with words for it: a member less, a member more, another type.
fn change(value: &Value, made: &mut dyn FnMut(String, Value)) {
    made("as another type".to_owned(), json!({ "unexpected": true }));
    match value {
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                change(item, &mut |words, item| {
                    let mut items = items.clone();
                    items[number] = item;
                    made(format!("/{number} {words}"), items.into());
                });
            }
        }
        Value::Object(members) => {
            let mut more = members.clone();
            more.insert("unexpected".to_owned(), true.into());
            made("with a member more".to_owned(), more.into());
            for (name, member) in members {
                let mut less = members.clone();
                less.remove(name);
                made(format!("/{name} removed"), less.into());
                change(member, &mut |words, member| {
                    let mut members = members.clone();
                    members.insert(name.clone(), member);
                    made(format!("/{name} {words}"), members.into());
                });
            }
        }
        _ => {}
    }
}
