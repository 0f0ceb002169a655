//! Serves the routes of a file, and replaces them when it gets SIGHUP; or tries itself under load.
//! See README.md.

use std::env;
use std::error::Error;
use std::fs;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum_reload::{Routes, load, runtime, serve};
use quiescence::Rcu;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "\
usage: axum-reload FILE [ADDRESS]  serves the routes of FILE (127.0.0.1:8080); SIGHUP reads it anew
       axum-reload --load SECONDS  requests beside reloads over loopback, and what came of them";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["--load", seconds] => match seconds.parse() {
            Ok(seconds @ 1..=600) => try_load(seconds),
            _ => Err(format!("--load takes 1 to 600 seconds, and not {seconds}").into()),
        },
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

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn read_routes(file: &str) -> Result<Routes, Box<dyn Error>> {
    let table = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    Ok(Routes::parse(&table).map_err(|error| format!("{file}: {error}"))?)
}

fn serve_file(file: &str, address: &str) -> Result<(), Box<dyn Error>> {
    let routes = Arc::new(Rcu::new(read_routes(file)?));
    runtime(cpus())?.block_on(async {
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

fn try_load(seconds: u64) -> Result<(), Box<dyn Error>> {
    let came = load::run(cpus(), 8, Duration::from_secs(seconds))?;
    println!("{came}");
    Ok(())
}
