//! An axum server that replaces its routes while it serves.
//!
//! The routes stand in an [`Rcu`]. A request looks its path up in a section of
//! [`quiescence::tokio::read`], which on a worker of the runtime begins nothing and counts nothing,
//! and copies its reply out. A reload puts a whole new table in the place of the old one, which is
//! freed when no request can be reading it: a request sees the old routes or the new ones.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use quiescence::tokio::{BuilderExt, read};
use quiescence::{Rcu, Weigh};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// The reply of each path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Weigh)]
pub struct Routes(HashMap<String, Reply>);

#[derive(Clone, Debug, PartialEq, Eq, Weigh)]
enum Reply {
    Text(String),
    Redirect(String),
}

impl Routes {
    /// Reads a table: a line `/path text` for a text, `/path -> /other` for a redirection. Empty
    /// lines, and those that begin with `#`, are left out.
    ///
    /// # Errors
    /// Which line is none of these, or has a path that stands above already.
    pub fn parse(table: &str) -> Result<Self, String> {
        let mut routes = HashMap::new();
        for (number, line) in table.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |why| {
                let line = number + 1;
                format!("line {line}: {why}; write \"/path text\" or \"/path -> /other\"")
            };
            let (path, reply) =
                line.split_once(' ').ok_or_else(|| bad("a path without a reply"))?;
            if !path.starts_with('/') {
                return Err(bad("a path begins with /"));
            }
            let reply = match reply.trim().strip_prefix("->") {
                Some(to) if !to.trim().starts_with('/') => {
                    return Err(bad("a redirection without a path"));
                }
                Some(to) => Reply::Redirect(to.trim().to_owned()),
                None => Reply::Text(reply.trim().to_owned()),
            };
            if routes.insert(path.to_owned(), reply).is_some() {
                return Err(bad("this path stands above already"));
            }
        }
        Ok(Self(routes))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    fn reply(&self, path: &str) -> Response {
        match self.0.get(path) {
            Some(Reply::Text(text)) => text.clone().into_response(),
            Some(Reply::Redirect(to)) => {
                (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to.as_str())]).into_response()
            }
            None => (StatusCode::NOT_FOUND, "no such route\n").into_response(),
        }
    }
}

/// A runtime of so many workers, each a reader of the global domain.
///
/// # Errors
/// If the system gives it no threads.
pub fn runtime(workers: usize) -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(workers).enable_all().enable_rcu().build()
}

/// Serves the routes, whichever they are, for ever.
///
/// # Errors
/// If the socket fails.
pub async fn serve(listener: TcpListener, routes: Arc<Rcu<Routes>>) -> io::Result<()> {
    let app = Router::new().fallback(dispatch).with_state(routes);
    axum::serve(listener, app).await
}

async fn dispatch(State(routes): State<Arc<Rcu<Routes>>>, request: Request) -> Response {
    read(|section| routes.load(section).reply(request.uri().path()))
}
