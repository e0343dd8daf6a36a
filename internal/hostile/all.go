package hostile

// All lists every misbehaviour.
func All() []Case {
	return []Case{
		// bodies and their encodings
		gzipBomb, brotliBomb, zstdBomb, deflateZlib, deflateRaw,
		encodingLie, encodingUnknown, encodingMany, doubleGzip, gzipTruncated, gzipBadSum,
		endlessBody, tricklingBody, stalledBody,
		// connections
		neverAnswers, resetMidBody, resetOnRequest, closeOnAccept, closesIdle, closesOnReuse, speaksIdle,
		http2Goaway, http2Refused,
		// headers and framing
		headerTrickle, giantHeader, headerFlood, cookieFlood, interimFlood,
		lengthTooLong, lengthTooShort, lengthTwice, lengthNegative, lengthHuge, lengthAndChunks,
		chunkedGarbage, chunkedHuge, chunkedOverhead,
		http09, binaryRubbish, emptyAnswer, headerRubbish, statusRubbish, headerUnending,
		status999, noContentBody, notModifiedBody, switching,
		// redirects
		redirectLoop, redirectSelf, redirectChain,
		redirectToLoopback, redirectToShort, redirectToNumber, redirectToMapped, redirectToPrivate,
		redirectToMetadata, redirectToFile, redirectToScript, redirectToData,
		locationMissing, locationEmpty, locationGarbage, locationMany,
		// pages
		wrongCharset, unknownCharset, hostileTitle, nulBytes, typeLie, typeMissing, deepHTML, manyLinks, calendar,
		// pacing
		retryAfterGarbage, retryAfterNegative, retryAfterHuge, retryAfterDate, retryAfterPast,
		// robots.txt and sitemaps
		robotsEndless, robotsRedirects, robotsHTML, robotsDown, sitemapLoop, sitemapBomb, sitemapEntities,
		// TLS
		selfSigned, expired, wrongName, tlsRubbish, tlsTrickle, tlsSilence,
	}
}
