/* Threads and atomics, in one place so that a platform without them has one file to change. */
#ifndef DCN_BASE_THREAD_H
#define DCN_BASE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* A thread of the library's own, to which no signal of the process is delivered. */
typedef pthread_t dcn_thread;

/* @return false: the system has none to give */
bool dcn_thread_start(dcn_thread *thread, void *(*run)(void *ctx), void *ctx);

static inline void dcn_thread_join(dcn_thread thread)
{
    pthread_join(thread, NULL);
}

typedef pthread_mutex_t dcn_mutex;
#define DCN_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER

static inline void dcn_lock(dcn_mutex *mutex)
{
    pthread_mutex_lock(mutex);
}

static inline void dcn_unlock(dcn_mutex *mutex)
{
    pthread_mutex_unlock(mutex);
}

static inline void dcn_mutex_init(dcn_mutex *mutex)
{
    pthread_mutex_init(mutex, NULL);
}

static inline void dcn_mutex_close(dcn_mutex *mutex)
{
    pthread_mutex_destroy(mutex);
}

/* Something to wait for, under a mutex: a change of state that the waiting look at again. */
typedef pthread_cond_t dcn_change;

static inline void dcn_change_init(dcn_change *change)
{
    pthread_cond_init(change, NULL);
}

static inline void dcn_change_await(dcn_change *change, dcn_mutex *mutex)
{
    pthread_cond_wait(change, mutex);
}

static inline void dcn_change_tell(dcn_change *change)
{
    pthread_cond_broadcast(change);
}

static inline void dcn_change_close(dcn_change *change)
{
    pthread_cond_destroy(change);
}

/* Many may share it, or one takes it alone. (C11 hides what POSIX has for this.) */
typedef struct dcn_access {
    dcn_mutex mutex;
    dcn_change change;
    unsigned sharing;
} dcn_access;

static inline void dcn_access_init(dcn_access *a)
{
    dcn_mutex_init(&a->mutex);
    dcn_change_init(&a->change);
    a->sharing = 0;
}

static inline void dcn_access_share(dcn_access *a)
{
    dcn_lock(&a->mutex);
    a->sharing++;
    dcn_unlock(&a->mutex);
}

static inline void dcn_access_unshare(dcn_access *a)
{
    dcn_lock(&a->mutex);
    if (--a->sharing == 0)
        dcn_change_tell(&a->change);
    dcn_unlock(&a->mutex);
}

/* When nobody shares it any more; who wants to waits until it is given. */
static inline void dcn_access_take(dcn_access *a)
{
    dcn_lock(&a->mutex);
    while (a->sharing)
        dcn_change_await(&a->change, &a->mutex);
}

static inline void dcn_access_give(dcn_access *a)
{
    dcn_unlock(&a->mutex);
}

static inline void dcn_access_close(dcn_access *a)
{
    dcn_change_close(&a->change);
    dcn_mutex_close(&a->mutex);
}

/* A reference count. Going up needs no order; the last one down must see all that others did (acquire-release). */
typedef atomic_uint_fast32_t dcn_refs;

static inline void dcn_refs_up(dcn_refs *refs)
{
    atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}

/* True for the last. */
static inline int dcn_refs_down(dcn_refs *refs)
{
    return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

#endif
