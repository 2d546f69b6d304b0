//! Values as JSON that can be read again. `serde_json` writes some that it does not read: `null` for a number
//! that is not finite, and more levels than it allows.

use serde::Serialize;
use serde::ser::{self, Serializer};
use serde_json::Value;

/// A value cannot be stored as JSON.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// It cannot be written.
    #[error("it cannot be written as JSON: {0}")]
    Write(#[from] serde_json::Error),
    /// It contains a number that JSON does not have.
    #[error("it contains the number {value}: expected finite numbers, because JSON has no others")]
    NotFinite {
        /// The number: not a number, or an infinity.
        value: f64,
    },
    /// It could not be read again.
    #[error(
        "it could not be read again: {0}; expected at most {MOST_LEVELS} arrays and objects within each other"
    )]
    Unreadable(serde_json::Error),
}

/// So many levels of arrays and objects are read.
const MOST_LEVELS: usize = 127;

/// Writes a value that can be read again.
pub(crate) fn write(value: &impl Serialize) -> Result<String, JsonError> {
    let json = serde_json::to_string(value)?;
    if json.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count() > MOST_LEVELS {
        serde_json::from_str::<Value>(&json).map_err(JsonError::Unreadable)?;
    }
    if json.contains("null") {
        value.serialize(Finite)?; // or it is a number that is not finite
    }
    Ok(json)
}

/// Fails at the first number that is not finite, and writes nothing.
#[derive(Clone, Copy)]
struct Finite;

type Checked = Result<(), JsonError>;

impl ser::Error for JsonError {
    fn custom<T: std::fmt::Display>(text: T) -> Self {
        Self::Write(ser::Error::custom(text))
    }
}

/// Values without numbers that could be wrong.
macro_rules! good {
    ($($serialize:ident($($value:ty),*))*) => {
        $(fn $serialize(self, $(_: $value),*) -> Checked { Ok(()) })*
    };
}

/// The beginnings of values that have parts.
macro_rules! begin {
    ($($serialize:ident($($known:ty),*): $parts:ident)*) => {
        $(
            type $parts = Self;
            fn $serialize(self, $(_: $known),*) -> Result<Self, JsonError> { Ok(self) }
        )*
    };
}

impl Serializer for Finite {
    type Ok = ();
    type Error = JsonError;

    fn serialize_f64(self, value: f64) -> Checked {
        if value.is_finite() { Ok(()) } else { Err(JsonError::NotFinite { value }) }
    }

    fn serialize_f32(self, value: f32) -> Checked {
        self.serialize_f64(value.into())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Checked {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Checked {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Checked {
        value.serialize(self)
    }

    good! {
        serialize_bool(bool)
        serialize_i8(i8)
        serialize_i16(i16)
        serialize_i32(i32)
        serialize_i64(i64)
        serialize_i128(i128)
        serialize_u8(u8)
        serialize_u16(u16)
        serialize_u32(u32)
        serialize_u64(u64)
        serialize_u128(u128)
        serialize_char(char)
        serialize_str(&str)
        serialize_bytes(&[u8])
        serialize_none()
        serialize_unit()
        serialize_unit_struct(&'static str)
        serialize_unit_variant(&'static str, u32, &'static str)
    }

    begin! {
        serialize_seq(Option<usize>): SerializeSeq
        serialize_tuple(usize): SerializeTuple
        serialize_tuple_struct(&'static str, usize): SerializeTupleStruct
        serialize_tuple_variant(&'static str, u32, &'static str, usize): SerializeTupleVariant
        serialize_map(Option<usize>): SerializeMap
        serialize_struct(&'static str, usize): SerializeStruct
        serialize_struct_variant(&'static str, u32, &'static str, usize): SerializeStructVariant
    }
}

/// Values that have parts.
macro_rules! parts {
    ($($of:ident: $($serialize:ident($($name:ty)?)),+;)*) => {
        $(impl ser::$of for Finite {
            type Ok = ();
            type Error = JsonError;

            $(fn $serialize<T: Serialize + ?Sized>(&mut self, $(_: $name,)? part: &T) -> Checked {
                part.serialize(*self)
            })+

            fn end(self) -> Checked {
                Ok(())
            }
        })*
    };
}

parts! {
    SerializeSeq: serialize_element();
    SerializeTuple: serialize_element();
    SerializeTupleStruct: serialize_field();
    SerializeTupleVariant: serialize_field();
    SerializeMap: serialize_key(), serialize_value();
    SerializeStruct: serialize_field(&'static str);
    SerializeStructVariant: serialize_field(&'static str);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;
    use std::collections::BTreeMap;

    fn nested(levels: usize) -> Value {
        (1..levels).fold(Value::Array(vec![]), |inner, level| {
            if level % 2 == 0 {
                Value::Array(vec![inner])
            } else {
                serde_json::json!({ "]": inner })
            }
        })
    }

    #[test]
    fn what_is_written_can_be_read() {
        let deepest = write(&nested(127)).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&deepest).unwrap(), nested(127));
        let raw = RawValue::from_string(nested(127).to_string()).unwrap();
        assert!(write(&raw).is_ok());
        for levels in [128, 129, 1_000] {
            assert!(matches!(write(&nested(levels)), Err(JsonError::Unreadable(_))), "{levels}");
        }
        assert!(matches!(write(&[raw]), Err(JsonError::Unreadable(_))));
        let text = r#"[{"\"#.repeat(200);
        assert_eq!(serde_json::from_str::<String>(&write(&text).unwrap()).unwrap(), text);
    }

    #[derive(Serialize)]
    enum Kinds {
        Unit,
        New(Option<f64>),
        Tuple((), f64),
        Struct { none: Option<()>, value: f32 },
    }

    #[derive(Serialize)]
    struct Pair(Option<u128>, f64);

    /// A `null` in each makes it look closer.
    #[test]
    fn a_number_that_is_not_finite_is_found_wherever_it_is() {
        let (values, some) = ([f64::NAN, f64::INFINITY, f64::NEG_INFINITY], Some(f64::NAN));
        let each = values.map(|value| write(&value).unwrap_err().to_string());
        assert!(
            each.iter().zip(["NaN", "inf", "-inf"]).all(|(error, value)| error.contains(value))
        );
        for bad in [
            write(&vec![None, some]),
            write(&((), 'c', f64::NAN)),
            write(&BTreeMap::from([("a", None), ("b", some)])),
            write(&[Kinds::Unit, Kinds::New(some)]),
            write(&Kinds::Tuple((), f64::NAN)),
            write(&Kinds::Struct { none: None, value: f32::NAN }),
            write(&Pair(None, f64::NAN)),
        ] {
            assert!(matches!(bad, Err(JsonError::NotFinite { .. })), "{bad:?}");
        }
        let good = (
            Pair(Some(u128::MAX), f64::MAX),
            [Kinds::Unit, Kinds::New(None), Kinds::Tuple((), f64::MIN_POSITIVE)],
            Kinds::Struct { none: Some(()), value: f32::MIN },
            BTreeMap::from([(7, None::<i128>), (8, Some(i128::MIN))]),
            ("null", [true], 'c', 1_u8, -1_i64),
        );
        assert!(write(&good).unwrap().contains("null"));
    }
}
