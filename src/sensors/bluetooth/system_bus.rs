//! BlueZ on the system bus. All D-Bus work is done on a thread of its own, which ends by itself when this is dropped:
//! it ends the scan, as far as BlueZ still answers, and closes the connection.

use super::adapter::Adapter;
use super::bus::Bus;
use super::bus::BusError;
use super::bus::Event;
use super::calls;
use super::queue::Queue;
use super::signals;
use futures_core::Stream;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc as reply;
use std::time::Duration;
use tokio::sync::mpsc;
use zbus::Connection;
use zbus::MessageStream;

/// Longest wait for the bus. With an answer each for adapters and scan, an opening stays below five seconds.
const CONNECT_WAIT: Duration = Duration::from_secs(1);
/// Longest wait for an answer, from here.
const ANSWER_WAIT: Duration = Duration::from_millis(1_800);
/// Longest time that the end of a scan may take.
const END_WAIT: Duration = Duration::from_secs(1);
/// Questions that wait, at most; further descriptions are left out.
const QUESTIONS_MAX: usize = 64;

/// Where the answer to a question goes.
type Reply<T> = reply::SyncSender<Result<T, BusError>>;

enum Question {
    Adapters(Reply<Vec<Adapter>>),
    Start(String, Reply<()>),
    Stop(String, Reply<()>),
    Describe(String, [u8; 6]),
}

/// A connection to BlueZ.
pub(super) struct SystemBus {
    questions: mpsc::Sender<Question>,
    events: Arc<Queue>,
}

impl SystemBus {
    /// Connects.
    pub(super) fn connect() -> Result<Self, BusError> {
        let (questions, asked) = mpsc::channel(QUESTIONS_MAX);
        let (connected, is_connected) = reply::sync_channel(1);
        let events = Arc::new(Queue::default());
        let filled = Arc::clone(&events);
        let thread = std::thread::Builder::new().name("bluetooth-bus".to_owned());
        thread.spawn(move || run(asked, filled, &connected)).map_err(|_| BusError::NoBus)?;
        answer(&is_connected, CONNECT_WAIT + CONNECT_WAIT / 2)?;
        Ok(Self { questions, events })
    }

    fn ask<T>(&self, question: impl FnOnce(Reply<T>) -> Question) -> Result<T, BusError> {
        let (replied, reply) = reply::sync_channel(1);
        self.questions.try_send(question(replied)).map_err(|refusal| match refusal {
            mpsc::error::TrySendError::Full(_) => BusError::Timeout,
            mpsc::error::TrySendError::Closed(_) => BusError::NoBus,
        })?;
        answer(&reply, ANSWER_WAIT)
    }
}

fn answer<T>(reply: &reply::Receiver<Result<T, BusError>>, wait: Duration) -> Result<T, BusError> {
    reply.recv_timeout(wait).unwrap_or_else(|missing| {
        Err(match missing {
            reply::RecvTimeoutError::Timeout => BusError::Timeout,
            reply::RecvTimeoutError::Disconnected => BusError::NoBus,
        })
    })
}

impl Bus for SystemBus {
    fn adapters(&mut self) -> Result<Vec<Adapter>, BusError> {
        self.ask(Question::Adapters)
    }

    fn start(&mut self, adapter: &str) -> Result<(), BusError> {
        self.ask(|reply| Question::Start(adapter.to_owned(), reply))
    }

    fn stop(&mut self, adapter: &str) -> Result<(), BusError> {
        self.ask(|reply| Question::Stop(adapter.to_owned(), reply))
    }

    fn describe(&mut self, adapter: &str, device: [u8; 6]) {
        // When too many wait already, the device's next advertisement asks again.
        let _ = self.questions.try_send(Question::Describe(adapter.to_owned(), device));
    }

    fn next(&mut self, timeout: Duration) -> Option<Event> {
        self.events.pop(timeout)
    }

    fn lost(&mut self) -> u64 {
        self.events.lost()
    }
}

/// The thread: connects, says so, answers until nobody asks any more.
fn run(asked: mpsc::Receiver<Question>, events: Arc<Queue>, connected: &Reply<()>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        // The other side hears of it by the end of this thread.
        return;
    };
    runtime.block_on(async {
        let connection = tokio::time::timeout(CONNECT_WAIT, calls::connect()).await.unwrap_or(Err(BusError::Timeout));
        match connection {
            Ok(connection) => {
                tokio::spawn(pump(MessageStream::from(&connection), Arc::clone(&events)));
                let _ = connected.send(Ok(()));
                serve(&connection, asked, &events).await;
            }
            Err(error) => {
                let _ = connected.send(Err(error));
            }
        }
    });
    events.close();
    // A task that hangs must not hold the thread.
    runtime.shutdown_background();
}

/// Moves signals into the queue as fast as they come.
async fn pump(mut stream: MessageStream, events: Arc<Queue>) {
    while let Some(message) = poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
        if let Some(event) = message.ok().and_then(|message| signals::read(&message)) {
            events.push(event);
        }
    }
    events.close();
}

/// Answers. An answer that comes too late finds nobody, which is no error here.
async fn serve(connection: &Connection, mut asked: mpsc::Receiver<Question>, events: &Queue) {
    let mut scanning = None;
    while let Some(question) = asked.recv().await {
        match question {
            Question::Adapters(reply) => {
                let answer = calls::objects(connection).await.map(|(adapters, devices)| {
                    devices.into_iter().for_each(|device| events.push(device));
                    adapters
                });
                let _ = reply.send(answer);
            }
            Question::Start(adapter, reply) => {
                let answer = calls::start(connection, &adapter).await;
                scanning = Some(adapter);
                let _ = reply.send(answer);
            }
            Question::Stop(adapter, reply) => {
                let _ = reply.send(calls::stop(connection, &adapter).await);
                scanning = None;
            }
            Question::Describe(adapter, device) => {
                calls::describe(connection, &adapter, device).await.into_iter().for_each(|event| events.push(event));
            }
        }
    }
    if let Some(adapter) = scanning {
        // The bus ends the scan of a client that is gone; this only spares it the wait.
        let _ = tokio::time::timeout(END_WAIT, calls::stop(connection, &adapter)).await;
    }
}
