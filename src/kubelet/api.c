/* The API server, by libcurl: one call after another, with the service account's token. */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "kubelet/claims.h"

enum { CONNECT_MS = 3000, CALL_MS = 10000, TOKEN_MAX = 64 << 10, REPLY_MAX = 8 << 20 };

static size_t on_bytes(char *bytes, size_t size, size_t count, void *data)
{
	struct ll_strbuf *reply = data;
	if (reply->length + size * count > REPLY_MAX)
		return 0;
	ll_strbuf_add(reply, bytes, size * count);
	return size * count;
}

/* The kubelet renews the token. */
static int read_token(const struct ll_kubelet_api *api, struct ll_strbuf *header, struct ll_err *err)
{
	char path[LL_KUBELET_PATH_SIZE];
	snprintf(path, sizeof path, "%s/token", api->account);
	ll_strbuf_adds(header, "Authorization: Bearer ");
	int rc = ll_strbuf_add_file(header, AT_FDCWD, path, TOKEN_MAX);
	if (rc)
		return ll_err_set(err, rc, "%.200s: %s", path, strerror(-rc));
	while (header->length && strchr(" \r\n", header->buf[header->length - 1]))
		header->buf[--header->length] = '\0';
	return strpbrk(header->buf, "\r\n") ? ll_err_set(err, -EINVAL, "%.200s: it is no token", path) : 0;
}

static int perform(struct ll_kubelet_api *api, struct curl_slist *headers, const char *method, const char *path,
		   const char *text, struct ll_strbuf *reply, long *ret_status, struct ll_err *err)
{
	char why[CURL_ERROR_SIZE] = "", authority[LL_KUBELET_PATH_SIZE];
	LL_SCOPE_STRBUF struct ll_strbuf url = LL_STRBUF_INIT;
	CURL *curl = api->curl;
	ll_strbuf_addf(&url, "%s%s", api->url, path);
	snprintf(authority, sizeof authority, "%s/ca.crt", api->account);
	curl_easy_reset(curl);
	curl_easy_setopt(curl, CURLOPT_URL, url.buf);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
	if (text)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, text);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_CAINFO, authority);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)CALL_MS);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, reply);
	CURLcode code = curl_easy_perform(curl);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, NULL);
	if (code != CURLE_OK)
		return ll_err_set(err, -EHOSTUNREACH, "the API server at %.150s: %.250s", api->url,
				  why[0] ? why : curl_easy_strerror(code));
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, ret_status);
	return 0;
}

int ll_kubelet_api_call(struct ll_kubelet_api *api, const char *method, const char *path, const json_t *body,
			long *ret_status, json_t **ret_reply, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf header = LL_STRBUF_INIT;
	LL_SCOPE_STRBUF struct ll_strbuf reply = LL_STRBUF_INIT;
	/* Nobody else may read the token. */
	if (strncmp(api->url, "https://", strlen("https://")) != 0)
		return ll_err_set(err, -EINVAL, "the API server at %.150s: it must be https://", api->url);
	api->curl = api->curl ? api->curl : curl_easy_init();
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	int rc = !api->curl || (body && !text) ? ll_err_set(err, -ENOMEM, "%s", strerror(ENOMEM)) : 0;
	if (!rc)
		rc = read_token(api, &header, err);
	struct curl_slist *headers = rc ? NULL : curl_slist_append(NULL, header.buf);
	if (!rc)
		headers = curl_slist_append(headers, "Content-Type: application/json");
	if (!rc)
		rc = perform(api, headers, method, path, text, &reply, ret_status, err);
	if (!rc)
		*ret_reply = json_loadb(reply.buf, reply.length, 0, NULL);
	curl_slist_free_all(headers);
	free(text);
	return rc;
}

void ll_kubelet_api_fini(struct ll_kubelet_api *api)
{
	if (api->curl)
		curl_easy_cleanup(api->curl);
	api->curl = NULL;
}

int ll_kubelet_api_refused(const char *what, long status, const json_t *reply, struct ll_err *err)
{
	const char *why = json_string_value(json_object_get(reply, "message"));
	return ll_err_set(err, -EREMOTEIO, "%.150s: the API server says %ld%s%.250s", what, status, why ? ": " : "",
			  why ? why : "");
}
