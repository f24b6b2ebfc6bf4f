/*
 * event_json.h - an event as the commands of `notify` get it.
 *
 *     {"event":"time-ending","time":"2026-12-03T14:00:00+0100","host":"gpu1","text":"job 12 …","job":12,
 *      "tenant":"research","uid":1001,"user":"alice","command":"python","card":3,"slice":null,"uuid":"GPU-…","dropped":0}
 *
 * What an event does not have is null. doc/department.md explains the fields.
 */
#ifndef LOADLINE_NOTIFY_EVENT_JSON_H
#define LOADLINE_NOTIFY_EVENT_JSON_H

#include "protocol/message_event.h"

/* Returns one line, with its newline, which the caller frees; NULL: out of memory. Looks up the name of the user, which
 * may take long. */
char *ll_event_json(const struct ll_message_event *event);

#endif
