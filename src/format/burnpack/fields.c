#include "format/burnpack/index.h"

#include "base/ckd.h"
#include "base/text.h"
#include "format/limit.h"

size_t dcn_bpk_find(dcn_chunk text, const char *const *names, size_t count)
{
    size_t i = 0;

    while (i < count && !dcn_chunk_is(text, names[i]))
        i++;
    return i;
}

decant_status dcn_bpk_unknown(dcn_bpk_header *h, const char *what, dcn_chunk name)
{
    decant_error_set(h->err, DECANT_UNSUPPORTED, "unknown %s '%.*s'", what, (int)dcn_min(name.len, 64),
                     (const char *)name.data);
    return dcn_unknown_at(dcn_cbor_offset(&h->cbor), h->err);
}

decant_status dcn_bpk_malformed(dcn_bpk_header *h, const char *what)
{
    decant_error_set(h->err, DECANT_MALFORMED, "%s", what);
    dcn_error_at(h->err, dcn_cbor_offset(&h->cbor));
    return DECANT_MALFORMED;
}

/* An unknown key where none is carried, as it may change what the known ones mean. */
static decant_status refuse_unknown(dcn_bpk_header *h, dcn_chunk key)
{
    if (h->lenient & DECANT_LENIENT_UNKNOWN_FIELDS) {
        h->odd.dropped++;
        dcn_cbor_skip(&h->cbor);
        return h->cbor.status;
    }
    dcn_bpk_unknown(h, "key", key);
    dcn_error_hint(h->err, "a newer decant may know it; open it leniently (--lenient) to ignore it");
    return DECANT_UNSUPPORTED;
}

static decant_status carry_unknown(dcn_bpk_header *h, dcn_chunk key, dcn_bpk_carried *c)
{
    const uint8_t *value = h->cbor.at;

    if (h->odd.unknowns++ == 0)
        h->odd.unknown = key;
    if (!dcn_cbor_skip(&h->cbor))
        return h->cbor.status;
    dcn_cbor_put(&c->pairs, dcn_utf8_valid(key.data, key.len) ? DCN_CBOR_TEXT : DCN_CBOR_BYTES, key.len);
    dcn_buf_put(&c->pairs, key.data, key.len);
    dcn_buf_put(&c->pairs, value, (size_t)(h->cbor.at - value));
    c->count++;
    return dcn_buf_check(&c->pairs, h->err);
}

/* The next key: `guess` if keys come in the order in which they are written, `count` if it is none of them. */
static size_t next_field(dcn_bpk_header *h, const dcn_bpk_field *fields, size_t count, size_t guess, dcn_chunk *key)
{
    size_t i = 0;

    if (guess < count && dcn_cbor_is_text(&h->cbor, fields[guess].key, fields[guess].key_len))
        return guess;
    if (!dcn_cbor_key(&h->cbor, key))
        return count;
    while (i < count && (key->len != fields[i].key_len || memcmp(key->data, fields[i].key, key->len) != 0))
        i++;
    return i;
}

decant_status dcn_bpk_read_fields(dcn_bpk_header *h, const dcn_bpk_field *fields, size_t count, void *into,
                                  dcn_bpk_carried *unknown)
{
    dcn_cbor_run run;
    dcn_chunk key;
    unsigned seen = 0;
    decant_status rc;
    size_t i, guess = 0;

    if (!dcn_cbor_map(&h->cbor, &run))
        return h->cbor.status;
    while (dcn_cbor_more(&h->cbor, &run)) {
        i = next_field(h, fields, count, guess, &key);
        if (h->cbor.status)
            break;
        if (i == count) {
            if ((rc = unknown ? carry_unknown(h, key, unknown) : refuse_unknown(h, key)))
                return rc;
            continue;
        }
        if (seen & 1u << i) {
            decant_error_set(h->err, DECANT_DUPLICATE, "duplicate key '%s'", fields[i].key);
            dcn_error_at(h->err, dcn_cbor_offset(&h->cbor));
            return DECANT_DUPLICATE;
        }
        seen |= 1u << i;
        guess = i + 1;
        if ((rc = fields[i].read(h, into))) {
            bool placed =
                rc != DECANT_MALFORMED || (h->err && h->err->tensor[0]); /* by a tensor: no need to say where */

            return placed ? rc : dcn_error_recast(h->err, rc, fields[i].key);
        }
    }
    if (h->cbor.status)
        return h->cbor.status;
    for (i = 0; i < count; i++) {
        if (fields[i].required && !(seen & 1u << i)) {
            dcn_bpk_malformed(h, "a key is missing");
            dcn_error_expected(h->err, "'%s'", fields[i].key);
            return DECANT_MALFORMED;
        }
    }
    return DECANT_OK;
}

decant_status dcn_bpk_begin_variant(dcn_bpk_header *h, dcn_bpk_variant *v)
{
    dcn_cbor *cbor = &h->cbor;

    v->has_value = dcn_cbor_peek(cbor) == DCN_CBOR_MAP;
    if (!v->has_value)
        dcn_cbor_text(cbor, &v->name);
    else if (dcn_cbor_map(cbor, &v->run) && !dcn_cbor_more(cbor, &v->run))
        dcn_cbor_fail(cbor, DECANT_MALFORMED, "empty map");
    else
        dcn_cbor_key(cbor, &v->name);
    return cbor->status;
}

decant_status dcn_bpk_end_variant(dcn_bpk_header *h, dcn_bpk_variant *v)
{
    if (v->has_value && dcn_cbor_more(&h->cbor, &v->run))
        dcn_cbor_fail(&h->cbor, DECANT_MALFORMED, "map of more than one pair");
    return h->cbor.status;
}

decant_status dcn_bpk_read_name(dcn_bpk_header *h, const char *what, const char *const *names, size_t count,
                                unsigned *out)
{
    dcn_chunk text;
    size_t i;

    if (!dcn_cbor_text(&h->cbor, &text))
        return h->cbor.status;
    i = dcn_bpk_find(text, names, count);
    if (i == count)
        return dcn_bpk_unknown(h, what, text);
    *out = (unsigned)i;
    return DECANT_OK;
}
