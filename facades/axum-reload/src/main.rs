//! Serves the routes of a file, and replaces them when it gets SIGHUP. See README.md.

use std::env;
use std::error::Error;
use std::fs;
use std::process::ExitCode;
use std::sync::Arc;

use axum_reload::{Routes, runtime, serve};
use quiescence::Rcu;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "usage: axum-reload FILE [ADDRESS]
serves the routes of FILE, on 127.0.0.1:8080 if no address is named; SIGHUP reads it anew";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        [file] if !file.starts_with('-') => serve_file(file, "127.0.0.1:8080"),
        [file, address] if !file.starts_with('-') => serve_file(file, address),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("axum-reload: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read_routes(file: &str) -> Result<Routes, Box<dyn Error>> {
    let table = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    Ok(Routes::parse(&table).map_err(|error| format!("{file}: {error}"))?)
}

fn serve_file(file: &str, address: &str) -> Result<(), Box<dyn Error>> {
    let routes = Arc::new(Rcu::new(read_routes(file)?));
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    runtime(cpus)?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        let mut reload = signal(SignalKind::hangup())?;
        println!("serving {file} on {}", listener.local_addr()?);
        let server = tokio::spawn(serve(listener, Arc::clone(&routes)));
        let reloads = async {
            while reload.recv().await.is_some() {
                // What is wrong with the file changes nothing that is served.
                match read_routes(file) {
                    Ok(new) => {
                        println!("{} routes of {file}", new.count());
                        routes.store_async(new).await;
                    }
                    Err(error) => eprintln!("axum-reload: {error}; the old routes stay"),
                }
            }
        };
        tokio::select! {
            served = server => Ok(served??),
            () = reloads => Ok(()),
        }
    })
}
