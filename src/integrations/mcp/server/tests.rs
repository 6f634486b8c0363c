//! The server and a client of a few lines, in one process.

use super::*;
use serde_json::Map;
use serde_json::json;
use tokio::io::AsyncBufReadExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::io::BufReader;
use tokio::io::DuplexStream;
use tokio::io::Lines;
use tokio::io::ReadHalf;
use tokio::io::WriteHalf;

/// Repeats what it is asked.
struct Echo;

impl Backend for Echo {
    fn search(&self, query: SearchEpisodes) -> Answer {
        Ok(json!({"text": query.text, "modality": query.modality, "limit": query.limit, "peek": query.peek}))
    }

    fn recall(&self, query: Recall) -> Answer {
        Err(format!("nothing is known of {:?}", query.text))
    }

    fn facts(&self, query: Facts) -> Answer {
        Ok(json!({"entity": query.entity, "as_of": query.as_of}))
    }

    fn context(&self, query: Context) -> Answer {
        Ok(json!({"tokens": query.tokens}))
    }

    fn meet(&self, person: MeetPerson) -> Answer {
        Ok(json!({"name": person.name}))
    }

    fn capture(&self, _moment: CaptureMoment) -> Answer {
        panic!("the camera fell off")
    }

    fn ingest(&self, line: Map<String, Value>) -> Answer {
        Ok(Value::Object(line))
    }
}

struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    number: u64,
}

impl Client {
    async fn send(&mut self, message: &Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})).await;
        let line = self.lines.next_line().await.unwrap().expect("an answer");
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], json!(self.number), "{answer}");
        answer["result"].clone()
    }

    async fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments})).await
    }
}

/// Runs a conversation with a server that was introduced to its client.
fn converse(talk: impl AsyncFnOnce(&mut Client)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(far);
        let server = tokio::spawn(Server::new(Arc::new(Echo)).serve(input, output));
        let (input, output) = tokio::io::split(near);
        let mut client = Client { lines: BufReader::new(input).lines(), output, number: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        });
        let welcome = client.ask("initialize", hello).await;
        assert_eq!(welcome["serverInfo"]["name"], "percept");
        assert!(welcome["instructions"].as_str().unwrap().contains("context"));
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        talk(&mut client).await;
        drop(client);
        server.await.unwrap().unwrap();
    });
}

#[test]
fn every_tool_is_listed_with_its_schema_its_words_and_its_hints() {
    converse(async |client| {
        let listed = client.ask("tools/list", json!({})).await;

        let tools = listed["tools"].as_array().unwrap();
        let mut hints: Vec<(&str, bool)> = tools
            .iter()
            .map(|tool| (tool["name"].as_str().unwrap(), tool["annotations"]["readOnlyHint"] == json!(true)))
            .collect();
        hints.sort_unstable();
        let expected = [
            ("capture_moment", false),
            ("context", true),
            ("facts", true),
            ("ingest_episode", false),
            ("meet_person", false),
            ("recall", true),
            ("search_episodes", false),
        ];
        assert_eq!(hints, expected);
        for tool in tools {
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object", "{tool}");
            assert!(tool["description"].as_str().unwrap().len() > 40, "{tool}");
            assert_eq!(tool["annotations"]["destructiveHint"], json!(false), "{tool}");
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{name} of {tool}");
            }
            assert!(schema.get("$defs").is_none(), "some clients do not follow references: {tool}");
        }
        let ingest = tools.iter().find(|tool| tool["name"] == "ingest_episode").unwrap();
        assert_eq!(ingest["inputSchema"]["required"], json!(["tool_name", "content", "timestamp"]));
    });
}

#[test]
fn a_call_is_answered_with_an_object_and_the_same_as_text() {
    converse(async |client| {
        let found = client.call("search_episodes", json!({"text": "dog", "limit": 3})).await;
        let line = json!({"tool_name": "note", "content": "x", "anything": [1]});
        let handed_in = client.call("ingest_episode", line.clone()).await;
        let bare = client.call("context", json!({})).await;

        let expected = json!({"text": "dog", "modality": [], "limit": 3, "peek": false});
        assert_eq!(found["structuredContent"], expected);
        let text: Value = serde_json::from_str(found["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!((text, &found["isError"]), (expected, &json!(false)));
        assert_eq!(handed_in["structuredContent"], line);
        assert_eq!(bare["structuredContent"], json!({"tokens": null}));
    });
}

#[test]
fn failures_are_sentences_that_a_model_can_read() {
    converse(async |client| {
        let cases = [
            ("recall", json!({"text": "Zoë"}), "nothing is known of \"Zoë\""),
            ("recall", json!({}), "missing field `text`"),
            ("meet_person", json!({"nam": "Alice"}), "unknown field `nam`"),
            ("search_episodes", json!({"limit": -1}), "invalid value"),
            ("capture_moment", json!({}), "percept failed inside"),
        ];
        for (tool, arguments, expected) in cases {
            let answer = client.call(tool, arguments).await;
            let text = answer["content"][0]["text"].as_str().unwrap();
            assert!(answer["isError"] == json!(true) && text.contains(expected), "{answer}");
        }
        let still = client.call("facts", json!({"entity": "Alice"})).await;
        assert_eq!(still["structuredContent"]["entity"], "Alice");
    });
}
