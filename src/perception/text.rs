//! A sentence as a unit vector: the tokenizer and the text tower.
//!
//! In: sentences, the time. Out: vectors of unit length in the space that the image tower shares.
//!
//! The tower takes a hundred megabytes and is needed seldom, so it is loaded for the first sentence and let go when
//! none has come for a while ([`TextTower::handle_timeout`]). Vectors are kept by sentence, and a tower belongs to
//! one model, so the same sentence is computed once per model. No file, no clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::id::ModelId;
use crate::domain::time::Stamp;
use crate::perception::clip;
use crate::perception::clip::ClipError;
use crate::perception::clip::Loader;
use crate::perception::model::ModelError;
use crate::perception::model::runtime::InputSpec;
use crate::perception::model::runtime::Model;
use crate::perception::model::runtime::ModelSpec;
use crate::perception::model::runtime::Values;
use crate::perception::tokenizer::CONTEXT_LENGTH;
use crate::perception::tokenizer::ClipTokenizer;

/// Sentences whose vectors are kept (2 KiB each for 512 values); the one longest unused goes first.
pub const CACHED_SENTENCES_MAX: usize = 1024;
const MASK: &str = "attention_mask";

/// The text tower, loaded when needed.
pub struct TextTower {
    model_id: ModelId,
    loader: Loader,
    idle_ms: i64,
    loaded: Option<Loaded>,
    cache: BTreeMap<String, Cached>,
    uses: u64,
}

struct Loaded {
    model: Box<dyn Model>,
    tokenizer: ClipTokenizer,
    has_mask: bool,
    used_at: Stamp,
}

struct Cached {
    vector: Arc<[f32]>,
    use_number: u64,
}

impl std::fmt::Debug for TextTower {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "TextTower({}, loaded: {})", self.model_id, self.is_loaded())
    }
}

impl TextTower {
    /// A tower that is not loaded yet and will be let go `idle_s` seconds after its last sentence.
    #[must_use]
    pub fn new(model_id: ModelId, idle_s: u32, loader: Loader) -> Self {
        Self { model_id, loader, idle_ms: i64::from(idle_s) * 1000, loaded: None, cache: BTreeMap::new(), uses: 0 }
    }

    /// The model, which the image tower shares.
    #[must_use]
    pub fn model_id(&self) -> &ModelId {
        &self.model_id
    }

    /// Whether the tower is in memory.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.loaded.is_some()
    }

    /// The vector of a sentence, unit length. A sentence that is known costs nothing and loads nothing.
    ///
    /// # Errors
    /// [`ClipError`]: this sentence goes without a vector; the next call tries again.
    pub fn embed(&mut self, text: &str, now: Stamp) -> Result<Arc<[f32]>, ClipError> {
        self.uses += 1;
        if let Some(cached) = self.cache.get_mut(text) {
            cached.use_number = self.uses;
            return Ok(Arc::clone(&cached.vector));
        }
        let loaded = match &mut self.loaded {
            Some(loaded) => loaded,
            empty => empty.insert(Loaded::load(&self.loader, now)?),
        };
        loaded.used_at = now;
        let vector = clip::unit_vector(&self.model_id, &loaded.run(text)?)?;
        self.remember(text, &vector);
        Ok(vector)
    }

    /// When [`Self::handle_timeout`] has something to do, monotonic milliseconds.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        self.loaded.as_ref().map(|loaded| loaded.used_at.monotonic_ms + self.idle_ms)
    }

    /// Lets the tower go when it has been idle for long enough. The vectors stay.
    pub fn handle_timeout(&mut self, now: Stamp) {
        if self.poll_timeout().is_some_and(|due_ms| due_ms <= now.monotonic_ms) {
            self.loaded = None;
        }
    }

    fn remember(&mut self, text: &str, vector: &Arc<[f32]>) {
        if self.cache.len() >= CACHED_SENTENCES_MAX {
            let oldest = self.cache.iter().min_by_key(|(_, cached)| cached.use_number).map(|(text, _)| text.clone());
            oldest.and_then(|text| self.cache.remove(&text));
        }
        self.cache.insert(text.to_owned(), Cached { vector: Arc::clone(vector), use_number: self.uses });
    }
}

impl Loaded {
    /// Some exports read an attention mask beside the ids and some do not; the file itself says which.
    fn load(loader: &Loader, now: Stamp) -> Result<Self, ModelError> {
        let ids = InputSpec::i64("input_ids", &[1, CONTEXT_LENGTH]);
        let mask = InputSpec::i64(MASK, &[1, CONTEXT_LENGTH]);
        let outputs = vec!["text_embeds".to_owned()];
        let plain = ModelSpec { inputs: vec![ids.clone()], outputs: outputs.clone() };
        let (model, has_mask) = match loader(&plain) {
            Err(ModelError::MissingInput { name, .. }) if name == MASK => {
                (loader(&ModelSpec { inputs: vec![ids, mask], outputs })?, true)
            }
            loaded => (loaded?, false),
        };
        Ok(Self { model, tokenizer: ClipTokenizer::new(), has_mask, used_at: now })
    }

    fn run(&mut self, text: &str) -> Result<Vec<crate::perception::model::runtime::Output>, ModelError> {
        let ids = self.tokenizer.encode(text);
        // The padding is the zeros after the end of text; a zero before it is the token "!".
        let end = ids.iter().rposition(|&id| id != 0).unwrap_or_default();
        let mask: [i64; CONTEXT_LENGTH] = std::array::from_fn(|index| i64::from(index <= end));
        if self.has_mask {
            self.model.run(&[Values::I64(&ids), Values::I64(&mask)])
        } else {
            self.model.run(&[Values::I64(&ids)])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Timestamp;
    use crate::perception::model::runtime::Output;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering;

    #[test]
    fn the_tower_is_loaded_for_a_sentence_and_let_go_when_idle() {
        let loads = Arc::new(AtomicUsize::new(0));
        let mut tower = tower(&loads, false);
        assert_eq!(tower.poll_timeout(), None);

        tower.embed("a dog", at(0)).unwrap();
        tower.handle_timeout(at(59_999));
        assert!(tower.is_loaded());
        tower.handle_timeout(at(60_000));

        assert!(!tower.is_loaded());
        assert_eq!(tower.poll_timeout(), None);
        tower.embed("a cat", at(70_000)).unwrap();
        assert_eq!(loads.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_known_sentence_needs_no_tower() {
        let loads = Arc::new(AtomicUsize::new(0));
        let mut tower = tower(&loads, false);
        let first = tower.embed("a dog", at(0)).unwrap();
        tower.handle_timeout(at(60_000));

        assert_eq!(tower.embed("a dog", at(61_000)).unwrap(), first);
        assert!(!tower.is_loaded());
    }

    #[test]
    fn the_cache_is_bounded_and_drops_what_was_unused_longest() {
        let mut tower = tower(&Arc::default(), false);
        for number in 0..=CACHED_SENTENCES_MAX {
            tower.embed("kept", at(0)).unwrap();
            tower.embed(&number.to_string(), at(0)).unwrap();
        }

        assert_eq!(tower.cache.len(), CACHED_SENTENCES_MAX);
        assert!(tower.cache.contains_key("kept") && !tower.cache.contains_key("0"));
    }

    #[test]
    fn an_export_with_a_mask_gets_ones_up_to_the_end_of_text() {
        let loads = Arc::new(AtomicUsize::new(0));
        let mut tower = tower(&loads, true);

        let vector = tower.embed("hi !", at(0)).unwrap();

        // Start, "hi", "!" (id 0), end: four ones.
        assert!((vector[0] / vector[1] - 4.0 / 49_406.0).abs() < 1e-6);
        assert_eq!(loads.load(Ordering::Relaxed), 2);
    }

    /// Answers with the number of ones in the mask (or 1) and the first id.
    struct Echo;

    impl Model for Echo {
        fn run(&mut self, inputs: &[Values<'_>]) -> Result<Vec<Output>, ModelError> {
            let sums: Vec<f32> = inputs
                .iter()
                .map(|input| match input {
                    Values::I64(ids) if ids[0] == 49_406 => 49_406.0,
                    Values::I64(mask) => mask.iter().sum::<i64>() as f32,
                    Values::F32(_) => 0.0,
                })
                .collect();
            let values = vec![sums.get(1).copied().unwrap_or(1.0), sums[0]];
            Ok(vec![Output { shape: vec![1, 2], values }])
        }
    }

    fn tower(loads: &Arc<AtomicUsize>, needs_mask: bool) -> TextTower {
        let loads = Arc::clone(loads);
        let loader: Loader = Box::new(move |spec| {
            loads.fetch_add(1, Ordering::Relaxed);
            if needs_mask && spec.inputs.len() == 1 {
                return Err(ModelError::MissingInput { file: "text_model.onnx".into(), name: MASK.to_owned() });
            }
            Ok(Box::new(Echo))
        });
        TextTower::new(ModelId::new("echo"), 60, loader)
    }

    fn at(ms: i64) -> Stamp {
        Stamp { monotonic_ms: ms, utc: Timestamp::from_millis(ms), quality: ClockQuality::Network }
    }
}
