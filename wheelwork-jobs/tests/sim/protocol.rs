//! The messages between a client and the server, as far as `tokio_postgres` sends and expects them.

use super::fault::Fault;
use crate::time::Timestamp;
use tokio::sync::mpsc::UnboundedReceiver;

/// The type of a parameter or a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Int,
    Text,
    Uuid,
    Bool,
    Time,
    Ints,
    Texts,
    Uuids,
    Bools,
    Times,
}

impl Type {
    /// Its number in the catalogue.
    pub(super) fn oid(self) -> i32 {
        match self {
            Self::Int => 20,
            Self::Text => 25,
            Self::Uuid => 2950,
            Self::Bool => 16,
            Self::Time => 1184,
            Self::Ints => 1016,
            Self::Texts => 1009,
            Self::Uuids => 2951,
            Self::Bools => 1000,
            Self::Times => 1185,
        }
    }

    /// What a list consists of.
    pub(super) fn element(self) -> Self {
        match self {
            Self::Ints => Self::Int,
            Self::Texts => Self::Text,
            Self::Uuids => Self::Uuid,
            Self::Bools => Self::Bool,
            Self::Times => Self::Time,
            other => other,
        }
    }
}

/// A value of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Int(i64),
    Text(String),
    Uuid(u128),
    Bool(bool),
    Time(Timestamp),
    Texts(Vec<String>),
}

impl Cell {
    pub(super) fn of<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Null, cell)
    }

    /// A value in an answer of PostgreSQL's.
    pub(super) fn read(r#type: Type, bytes: Option<Vec<u8>>) -> Self {
        let Some(bytes) = bytes else { return Self::Null };
        match r#type {
            Type::Int => Self::Int(int_of(&bytes)),
            Type::Text => Self::Text(text_of(&bytes)),
            Type::Uuid => Self::Uuid(uuid_of(&bytes)),
            Type::Bool => Self::Bool(bytes == [1]),
            Type::Time => Self::Time(time_of(&bytes)),
            Type::Texts => Self::Texts(Parameters(vec![Some(bytes)]).texts(1)),
            other => panic!("a column of {other:?}"),
        }
    }
}

/// The year 2000, from which the server counts, in microseconds since 1970.
const EPOCH: i64 = 946_684_800_000_000;

/// The parameters of a statement. They have the types that the statement has said.
pub(super) struct Parameters(Vec<Option<Vec<u8>>>);

fn int_of(bytes: &[u8]) -> i64 {
    i64::from_be_bytes(bytes.try_into().expect("8 bytes"))
}

fn uuid_of(bytes: &[u8]) -> u128 {
    u128::from_be_bytes(bytes.try_into().expect("16 bytes"))
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("a text in UTF-8")
}

fn time_of(bytes: &[u8]) -> Timestamp {
    Timestamp::from_micros((int_of(bytes) + EPOCH).max(0).cast_unsigned())
}

impl Parameters {
    pub(super) fn of(values: Vec<Option<Vec<u8>>>) -> Self {
        Self(values)
    }

    fn maybe<T>(&self, number: usize, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        self.0[number - 1].as_deref().map(read)
    }

    fn array<T>(&self, number: usize, read: impl Fn(&[u8]) -> T) -> Vec<Option<T>> {
        let mut bytes = Bytes(self.0[number - 1].as_deref().expect("an array"));
        if bytes.int() == 0 {
            return Vec::new();
        }
        let _ = (bytes.int(), bytes.int()); // whether there are nulls, and the type
        let length = bytes.int();
        bytes.int(); // the lower bound
        (0..length).map(|_| bytes.value().map(&read)).collect()
    }

    fn full<T>(&self, number: usize, read: impl Fn(&[u8]) -> T) -> Vec<T> {
        self.array(number, read).into_iter().flatten().collect()
    }

    pub(super) fn maybe_int(&self, number: usize) -> Option<i64> {
        self.maybe(number, int_of)
    }

    pub(super) fn int(&self, number: usize) -> i64 {
        self.maybe_int(number).expect("a number")
    }

    pub(super) fn uuid(&self, number: usize) -> u128 {
        self.maybe(number, uuid_of).expect("a uuid")
    }

    pub(super) fn bool(&self, number: usize) -> bool {
        self.maybe(number, |bytes| bytes == [1]).expect("a truth value")
    }

    pub(super) fn maybe_text(&self, number: usize) -> Option<String> {
        self.maybe(number, text_of)
    }

    pub(super) fn text(&self, number: usize) -> String {
        self.maybe_text(number).expect("a text")
    }

    pub(super) fn maybe_time(&self, number: usize) -> Option<Timestamp> {
        self.maybe(number, time_of)
    }

    pub(super) fn ints(&self, number: usize) -> Vec<i64> {
        self.full(number, int_of)
    }

    pub(super) fn maybe_ints(&self, number: usize) -> Vec<Option<i64>> {
        self.array(number, int_of)
    }

    pub(super) fn uuids(&self, number: usize) -> Vec<u128> {
        self.full(number, uuid_of)
    }

    pub(super) fn bools(&self, number: usize) -> Vec<bool> {
        self.full(number, |bytes| bytes == [1])
    }

    pub(super) fn texts(&self, number: usize) -> Vec<String> {
        self.full(number, text_of)
    }

    pub(super) fn maybe_texts(&self, number: usize) -> Vec<Option<String>> {
        self.array(number, text_of)
    }

    pub(super) fn maybe_times(&self, number: usize) -> Vec<Option<Timestamp>> {
        self.array(number, time_of)
    }
}

/// What is left of a message.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().expect("4 bytes"))
    }

    fn short(&mut self) -> usize {
        usize::from(u16::from_be_bytes(self.take(2).try_into().expect("2 bytes")))
    }

    fn string(&mut self) -> String {
        let length = self.0.iter().position(|byte| *byte == 0).expect("the end of a string");
        let string = text_of(self.take(length));
        self.take(1);
        string
    }

    fn value(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.int()).ok()?;
        Some(self.take(length))
    }
}

/// What a client sends.
pub(super) enum Message {
    /// Several statements without parameters.
    Simple(String),
    Parse {
        name: String,
        text: String,
    },
    Describe {
        name: String,
    },
    Bind {
        name: String,
        parameters: Parameters,
    },
    Execute,
    Close {
        name: String,
    },
    Sync,
    Terminate,
}

/// How a connection begins.
pub(super) enum Opening {
    Startup,
    /// To cancel the statement of another backend.
    Cancel(u64),
}

/// Reads the packets that come.
pub(super) struct Reader {
    packets: UnboundedReceiver<Vec<u8>>,
    bytes: Vec<u8>,
}

const CANCEL: i32 = 80_877_102;

impl Reader {
    pub(super) fn new(packets: UnboundedReceiver<Vec<u8>>) -> Self {
        Self { packets, bytes: Vec::new() }
    }

    /// Reads until `length` bytes are there. False at the end.
    async fn fill(&mut self, length: usize) -> bool {
        while self.bytes.len() < length {
            match self.packets.recv().await {
                Some(packet) => self.bytes.extend(packet),
                None => return false,
            }
        }
        true
    }

    /// A message that begins with its length, after `skip` bytes.
    async fn framed(&mut self, skip: usize) -> Option<Vec<u8>> {
        if !self.fill(skip + 4).await {
            return None;
        }
        let length = usize::try_from(Bytes(&self.bytes[skip..]).int()).ok()?;
        if !self.fill(skip + length).await {
            return None;
        }
        let rest = self.bytes.split_off(skip + length);
        Some(std::mem::replace(&mut self.bytes, rest))
    }

    pub(super) async fn opening(&mut self) -> Option<Opening> {
        let message = self.framed(0).await?;
        let mut bytes = Bytes(&message[4..]);
        Some(match bytes.int() {
            CANCEL => Opening::Cancel(u64::try_from(bytes.int()).ok()?),
            _ => Opening::Startup,
        })
    }

    /// The next message. `None` at the end. Can be dropped half-way.
    pub(super) async fn message(&mut self) -> Option<Message> {
        let message = self.framed(1).await?;
        let mut bytes = Bytes(&message[5..]);
        Some(match message[0] {
            b'Q' => Message::Simple(bytes.string()),
            b'P' => Message::Parse { name: bytes.string(), text: bytes.string() },
            b'D' => {
                bytes.take(1);
                Message::Describe { name: bytes.string() }
            }
            b'B' => {
                bytes.string(); // the portal
                let name = bytes.string();
                for _ in 0..bytes.short() {
                    bytes.short(); // all are binary
                }
                let count = bytes.short();
                let values = (0..count).map(|_| bytes.value().map(<[u8]>::to_vec)).collect();
                Message::Bind { name, parameters: Parameters(values) }
            }
            b'E' => Message::Execute,
            b'C' => {
                bytes.take(1);
                Message::Close { name: bytes.string() }
            }
            b'S' => Message::Sync,
            b'X' => Message::Terminate,
            other => panic!("a message {:?}", char::from(other)),
        })
    }
}

/// An array of texts: its dimensions, whether there are nulls, the type, the length and the lower bound.
fn array_of(texts: &[String]) -> Vec<u8> {
    let length = |length: usize| i32::try_from(length).unwrap_or(0);
    let head = match texts.len() {
        0 => vec![0, 0, Type::Text.oid()],
        some => vec![1, 0, Type::Text.oid(), length(some), 1],
    };
    let mut bytes: Vec<u8> = head.into_iter().flat_map(i32::to_be_bytes).collect();
    for text in texts {
        bytes.extend(length(text.len()).to_be_bytes());
        bytes.extend(text.bytes());
    }
    bytes
}

/// Collects the answers of the server.
#[derive(Default)]
pub(super) struct Answer(Vec<u8>);

impl Answer {
    fn message(&mut self, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
        self.0.push(tag);
        let begin = self.0.len();
        self.0.extend([0; 4]);
        body(&mut self.0);
        let length = i32::try_from(self.0.len() - begin).expect("a short message");
        self.0[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    pub(super) fn started(&mut self, backend: u64) {
        self.message(b'R', |body| body.extend(0_i32.to_be_bytes()));
        self.message(b'K', |body| {
            body.extend(i32::try_from(backend).unwrap_or(0).to_be_bytes());
            body.extend(0_i32.to_be_bytes());
        });
    }

    /// `status` is `I` outside of a transaction, `T` in one, and `E` in one that has failed.
    pub(super) fn ready(&mut self, status: u8) {
        self.message(b'Z', |body| body.push(status));
    }

    /// A message without content: `1` parsed, `2` bound, `3` closed.
    pub(super) fn short(&mut self, tag: u8) {
        self.message(tag, |_| {});
    }

    pub(super) fn complete(&mut self, rows: usize) {
        self.message(b'C', |body| body.extend(format!("SELECT {rows}\0").bytes()));
    }

    pub(super) fn described(&mut self, parameters: &[Type], columns: &[Type]) {
        self.message(b't', |body| {
            body.extend(u16::try_from(parameters.len()).unwrap_or(0).to_be_bytes());
            body.extend(parameters.iter().flat_map(|kind| kind.oid().to_be_bytes()));
        });
        if columns.is_empty() {
            return self.short(b'n');
        }
        self.columns(columns);
    }

    fn columns(&mut self, columns: &[Type]) {
        self.message(b'T', |body| {
            body.extend(u16::try_from(columns.len()).unwrap_or(0).to_be_bytes());
            for column in columns {
                body.extend(b"column\0");
                body.extend(0_i32.to_be_bytes()); // no table
                body.extend(0_i16.to_be_bytes());
                body.extend(column.oid().to_be_bytes());
                body.extend((-1_i16).to_be_bytes());
                body.extend((-1_i32).to_be_bytes());
                body.extend(0_i16.to_be_bytes());
            }
        });
    }

    pub(super) fn row(&mut self, cells: &[Cell]) {
        self.message(b'D', |body| {
            body.extend(u16::try_from(cells.len()).unwrap_or(0).to_be_bytes());
            for cell in cells {
                let bytes = match cell {
                    Cell::Null => {
                        body.extend((-1_i32).to_be_bytes());
                        continue;
                    }
                    Cell::Int(number) => number.to_be_bytes().to_vec(),
                    Cell::Text(text) => text.as_bytes().to_vec(),
                    Cell::Uuid(id) => id.to_be_bytes().to_vec(),
                    Cell::Bool(is) => vec![u8::from(*is)],
                    Cell::Time(time) => {
                        (time.as_micros().cast_signed() - EPOCH).to_be_bytes().to_vec()
                    }
                    Cell::Texts(texts) => array_of(texts),
                };
                body.extend(i32::try_from(bytes.len()).unwrap_or(0).to_be_bytes());
                body.extend(bytes);
            }
        });
    }

    /// The answer to a simple query: one row with one text.
    pub(super) fn text(&mut self, text: &str) {
        self.columns(&[Type::Text]);
        self.row(&[Cell::Text(text.to_owned())]);
        self.complete(1);
    }

    pub(super) fn notice(&mut self, payload: &str) {
        self.message(b'A', |body| {
            body.extend(0_i32.to_be_bytes());
            body.extend(b"channel\0");
            body.extend(payload.bytes());
            body.push(0);
        });
    }

    pub(super) fn error(&mut self, fault: Fault) {
        self.message(b'E', |body| {
            for field in ["SERROR", "VERROR"] {
                body.extend(field.bytes());
                body.push(0);
            }
            body.extend(format!("C{}\0M{fault}\0\0", fault.code()).bytes());
        });
    }
}
