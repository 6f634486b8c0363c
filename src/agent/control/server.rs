//! The server's thread: routes, and the way of an order to the loop and back.

use super::Action;
use super::Capture;
use super::Forget;
use super::Mute;
use super::ORDERS_MAX;
use super::Order;
use super::metrics;
use super::socket;
use crate::agent::gists::AskedGist;
use crate::agent::ingest;
use crate::agent::search;
use crate::agent::search::Desk;
use crate::agent::status::StatusCell;
use anyhow::Context as _;
use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::response::Response;
use axum::routing::get;
use axum::routing::post;
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::oneshot;
use tokio::sync::watch;

/// Largest body of a request, in bytes.
const BODY_BYTES_MAX: usize = 256 * 1024;

/// Longest wait for the loop's answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Searches under way or waiting at most; a further one is answered with 503.
const SEARCHES_MAX: usize = 8;

/// What the server needs.
pub struct ServerOptions {
    /// Where the socket stands.
    pub socket: PathBuf,
    /// Loopback address of metrics and health.
    pub metrics: Option<SocketAddr>,
    /// What the agent says about itself.
    pub status: StatusCell,
    /// Answers searches.
    pub desk: Arc<Desk>,
}

/// The running server. Dropping it removes the socket.
pub struct Server {
    socket: PathBuf,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone)]
struct Shared {
    status: StatusCell,
    orders: mpsc::SyncSender<Order>,
    desk: Arc<Desk>,
    searches: Arc<Semaphore>,
}

impl Server {
    /// Starts the thread; orders come out of the receiver.
    ///
    /// # Errors
    /// When the socket or the metrics' port cannot be had.
    pub fn start(options: ServerOptions) -> anyhow::Result<(Self, mpsc::Receiver<Order>)> {
        let listener = socket::listen(&options.socket)?;
        let metrics = options.metrics.map(listen_loopback).transpose()?;
        let (orders, inbox) = mpsc::sync_channel(ORDERS_MAX);
        let (stop, stopped) = watch::channel(false);
        let shared = Shared {
            status: options.status,
            orders,
            desk: options.desk,
            searches: Arc::new(Semaphore::new(SEARCHES_MAX)),
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().context("start the control")?;
        let thread = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || runtime.block_on(serve(listener, metrics, shared, stopped)))
            .context("start the control")?;
        Ok((Self { socket: options.socket, stop, thread: Some(thread) }, inbox))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        let _ = std::fs::remove_file(&self.socket);
        // The thread ends with its process: a client that hangs must not hold up the end.
        drop(self.thread.take());
    }
}

fn listen_loopback(address: SocketAddr) -> anyhow::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address).with_context(|| format!("listen at {address} for metrics"))?;
    listener.set_nonblocking(true).context("prepare the metrics' port")?;
    Ok(listener)
}

async fn serve(
    listener: std::os::unix::net::UnixListener,
    metrics: Option<std::net::TcpListener>,
    shared: Shared,
    stopped: watch::Receiver<bool>,
) {
    let stop = |mut stopped: watch::Receiver<bool>| async move { drop(stopped.wait_for(|stop| *stop).await) };
    if let Some(listener) = metrics {
        let router = observers().with_state(shared.clone());
        let stop = stop(stopped.clone());
        tokio::spawn(async move {
            let served = async {
                axum::serve(tokio::net::TcpListener::from_std(listener)?, router).with_graceful_shutdown(stop).await
            };
            tell(served.await);
        });
    }
    let router = observers().merge(control()).with_state(shared);
    let served = async {
        let listener = tokio::net::UnixListener::from_std(listener)?;
        axum::serve(listener, router).with_graceful_shutdown(stop(stopped)).await
    };
    tell(served.await);
}

fn tell(served: std::io::Result<()>) {
    if let Err(error) = served {
        tracing::error!(%error, "the control ended; the agent goes on without it");
    }
}

/// What may be seen on the loopback port as well.
fn observers() -> Router<Shared> {
    Router::new()
        .route("/metrics", get(metrics_text))
        .route("/healthz", get(|| async { Json(json!({"status": "alive"})) }))
        .route("/readyz", get(ready))
}

fn control() -> Router<Shared> {
    Router::new()
        .route("/v1/status", get(|State(shared): State<Shared>| async move { Json(shared.status.get()) }))
        .route("/v1/mute", post(mute))
        .route("/v1/unmute", post(unmute))
        .route("/v1/capture", post(capture))
        .route("/v1/search", post(search))
        .route("/v1/gist", post(gist))
        .route("/v1/forget", post(forget))
        .route("/v1/prune", post(|State(shared): State<Shared>| async move { shared.order(Action::Prune).await }))
        .route(
            "/v1/reconcile",
            post(|State(shared): State<Shared>| async move { shared.order(Action::Reconcile).await }),
        )
        .route("/v1/reload", post(|State(shared): State<Shared>| async move { shared.order(Action::Reload).await }))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .merge(Router::new().route("/v1/ingest", post(take_in)).layer(DefaultBodyLimit::max(ingest::BODY_BYTES_MAX)))
}

async fn metrics_text(State(shared): State<Shared>) -> Response {
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics::text(&shared.status.get())).into_response()
}

async fn ready(State(shared): State<Shared>) -> Response {
    let status = shared.status.get();
    let is_ready = status.stuck.is_empty() && status.store.trouble.is_none();
    let code = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(json!({"ready": is_ready, "stuck": status.stuck, "store": status.store.trouble}))).into_response()
}

async fn mute(State(shared): State<Shared>, body: Result<Json<Mute>, JsonRejection>) -> Response {
    shared.order_of(body.map(|Json(mute)| Action::Mute(mute))).await
}

async fn unmute(State(shared): State<Shared>, body: Result<Json<Mute>, JsonRejection>) -> Response {
    shared.order_of(body.map(|Json(mute)| Action::Unmute(mute))).await
}

async fn capture(State(shared): State<Shared>, body: Result<Json<Capture>, JsonRejection>) -> Response {
    shared.order_of(body.map(|Json(capture)| Action::Capture(capture))).await
}

/// On a thread of its own: neither the loop nor other requests wait for it.
async fn search(State(shared): State<Shared>, body: Result<Json<search::Request>, JsonRejection>) -> Response {
    let request = match body {
        Ok(Json(request)) => request,
        Err(rejection) => {
            return problem(rejection.status(), "The request is not understood", &rejection.body_text());
        }
    };
    let Ok(permit) = Arc::clone(&shared.searches).try_acquire_owned() else {
        return problem(StatusCode::SERVICE_UNAVAILABLE, "The agent is busy", "too many searches wait; try again");
    };
    let work = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        shared.desk.answer(&request)
    });
    match tokio::time::timeout(ANSWER_WITHIN, work).await {
        Ok(Ok(Ok(answer))) => Json(answer).into_response(),
        Ok(Ok(Err(error))) => {
            problem(StatusCode::UNPROCESSABLE_ENTITY, "The agent cannot do that", &format!("{error:#}"))
        }
        Ok(Err(error)) => problem(StatusCode::INTERNAL_SERVER_ERROR, "The search broke off", &error.to_string()),
        Err(_) => problem(StatusCode::GATEWAY_TIMEOUT, "The agent did not answer", "the search takes too long"),
    }
}

/// JSON lines; answered after their commit.
async fn take_in(State(shared): State<Shared>, body: Result<Bytes, BytesRejection>) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => return problem(rejection.status(), "The lines are too many", &rejection.body_text()),
    };
    let lines = body.iter().filter(|byte| **byte == b'\n').count();
    if lines > ingest::BODY_LINES_MAX {
        let detail = format!("{lines} lines; the most in one request is {}", ingest::BODY_LINES_MAX);
        return problem(StatusCode::PAYLOAD_TOO_LARGE, "The lines are too many", &detail);
    }
    shared.order(Action::Ingest(body.to_vec())).await
}

async fn gist(State(shared): State<Shared>, body: Result<Json<AskedGist>, JsonRejection>) -> Response {
    shared.order_of(body.map(|Json(asked)| Action::Gist(asked))).await
}

async fn forget(State(shared): State<Shared>, body: Result<Json<Forget>, JsonRejection>) -> Response {
    shared.order_of(body.map(|Json(forget)| Action::Forget(Box::new(forget)))).await
}

impl Shared {
    async fn order_of(&self, action: Result<Action, JsonRejection>) -> Response {
        match action {
            Ok(action) => self.order(action).await,
            Err(rejection) => problem(rejection.status(), "The request is not understood", &rejection.body_text()),
        }
    }

    async fn order(&self, action: Action) -> Response {
        let (reply, answer) = oneshot::channel();
        if self.orders.try_send(Order { action, reply }).is_err() {
            return problem(StatusCode::SERVICE_UNAVAILABLE, "The agent is busy", "too many orders wait; try again");
        }
        match tokio::time::timeout(ANSWER_WITHIN, answer).await {
            Ok(Ok(Ok(value))) => Json(value).into_response(),
            Ok(Ok(Err(cause))) => problem(StatusCode::UNPROCESSABLE_ENTITY, "The agent cannot do that", &cause),
            Ok(Err(_)) => problem(StatusCode::SERVICE_UNAVAILABLE, "The agent is stopping", "it took no more orders"),
            Err(_) => {
                problem(StatusCode::GATEWAY_TIMEOUT, "The agent did not answer", "it is busy; `percept status` tells")
            }
        }
    }
}

/// RFC 9457.
fn problem(status: StatusCode, title: &str, detail: &str) -> Response {
    let body = json!({"type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail});
    (status, [(CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response()
}
